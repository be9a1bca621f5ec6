// SPDX-License-Identifier: Apache-2.0
// A listening socket.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

struct HttpListener {
  Fd socket;
  std::string host;  // "127.0.0.1:8341", "[::1]:8341"
};

// `port` 0: a free one. Fails with kBadInput for an address that is not loopback, unless `remote`,
// and for one that this machine does not have; with kEnvironment when the port is taken.
Result<HttpListener> listen_on(const std::string& host, int port, bool remote);

}  // namespace kernelpro
