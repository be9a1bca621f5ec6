// SPDX-License-Identifier: Apache-2.0
// MCP's streamable HTTP transport: POST /mcp is answered with JSON or an event stream; DELETE ends
// a session; GET is refused, because the server starts no streams itself. Beside it the live page
// (serve/web), at /. Any client with the token
// can run code. So the server binds to loopback unless `remote` is set, and checks the names in
// Host and Origin, so that no web page can reach it through a browser. A client that has not shown
// the token yet holds one of a few places for a few seconds, and loses it to a newer client when
// they are all taken: slow strangers cannot keep anyone out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

struct HttpSettings {
  std::string host = "127.0.0.1";
  int port = 8341;                   // 0: any free port
  bool remote = false;               // `host` may be an address other than loopback
  std::string token;                 // REQUIRES: not empty
  std::vector<std::string> hosts;    // names allowed in Host, in addition to this machine's
  std::vector<std::string> origins;  // web origins that may send requests
  // Timeouts in seconds: to show the token after connecting; then to receive a head or a body, to
  // send an answer, between requests.
  double stranger_s = 5;
  double receive_s = 20;
  double send_s = 30;
  double idle_s = 120;
  double unused_s = 0;  // the server ends after so long without a client; 0: never
};

// 256 random bits as text.
std::string random_token();

// Serves until a signal arrives, or no client has come for `unused_s`. Calls `ready` with the
// address, "http://127.0.0.1:8341". Fails with kBadInput for an address that is not loopback
// without `remote`, with kEnvironment when the port is taken.
Result<void> serve_http(const HttpSettings& http, const DeskSettings& desk,
                        const std::function<void(const std::string& url)>& ready);

}  // namespace kernelpro
