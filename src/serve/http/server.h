// SPDX-License-Identifier: Apache-2.0
// MCP's streamable HTTP transport: POST /mcp with an answer as JSON or as an event stream, DELETE
// to end a session; there is no stream of the server's own, so GET is refused. It runs code for
// whoever has the token: loopback only unless told otherwise, and the names in Host and Origin are
// checked, so that no web page can reach it through a browser.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

struct HttpSettings {
  std::string host = "127.0.0.1";
  int port = 8341;      // 0: a free one
  bool remote = false;  // `host` may be an address that is not this machine's own loopback
  std::string token;    // REQUIRES: not empty
  std::vector<std::string> hosts;    // names that requests may be for, besides this machine's
  std::vector<std::string> origins;  // of web pages that may ask
  // Seconds: for a head or a body to come, for an answer to be taken, between requests.
  double receive_s = 20;
  double send_s = 30;
  double idle_s = 120;
};

// 256 random bits as text.
std::string random_token();

// Serves until a signal comes. `ready` hears the URL. Fails with kBadInput for an address that is
// not loopback without `remote`, with kEnvironment when the port is taken.
Result<void> serve_http(const HttpSettings& http, const DeskSettings& desk,
                        const std::function<void(const std::string& url)>& ready);

}  // namespace kernelpro
