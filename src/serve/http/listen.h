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

// `port` 0: any free port. Fails with kBadInput if the address is not loopback and not `remote`, or
// is not an address of this machine; with kEnvironment if the port is taken.
Result<HttpListener> listen_on(const std::string& host, int port, bool remote);

}  // namespace kernelpro
