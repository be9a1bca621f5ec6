// SPDX-License-Identifier: Apache-2.0
// The live page over a connection: its files, its JSON, its events.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "serve/http/connection.h"
#include "serve/http/message.h"
#include "serve/web/web.h"

namespace kernelpro {

class LivePages {
 public:
  LivePages(const std::string& runs, const std::atomic<bool>& stopping)
      : web_(runs), stopping_(stopping) {}

  // Whether the request is for one of the page's files, which anyone may have.
  static bool is_file(const HttpRequestHead& head);
  static bool serves(const HttpRequestHead& head) { return Web::serves(head.path); }
  // Answers a request for a file, or one that has shown the token. `headers`: "Name: value". False:
  // the connection is no longer usable.
  bool serve(HttpConnection* connection, const HttpRequestHead& head,
             const std::vector<std::string>& headers);

 private:
  bool stream(HttpConnection* connection, const std::string& query,
              const std::vector<std::string>& headers);

  Web web_;
  const std::atomic<bool>& stopping_;
};

// One chunk of a chunked body. False: the client is gone, or does not read.
bool send_chunk(HttpConnection* connection, const std::string& text);

}  // namespace kernelpro
