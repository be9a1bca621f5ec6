// SPDX-License-Identifier: Apache-2.0
#include "serve/http/pages.h"

#include <unistd.h>

#include <cstdio>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr unsigned kPollMicroseconds = 100'000;
constexpr double kHeartbeat = 15;  // seconds between signs of life in a stream

// The page runs only its own script, talks only to this server and is in no frame. A report that it
// saves is a file with rules of its own.
constexpr const char* kPolicy =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
    "'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string start_of(int status, const std::string& type, const std::vector<std::string>& headers) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " " + std::string(status_text(status)) +
                     "\r\nContent-Type: " + type + "\r\n";
  for (const std::string& line : headers) text += line + "\r\n";
  return text + kPolicy +
         "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
         "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n";
}

}  // namespace

bool send_chunk(HttpConnection* connection, const std::string& text) {
  char size[24];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return connection->send(size + text + "\r\n");
}

bool LivePages::is_file(const HttpRequestHead& head) {
  return head.method == "GET" && Web::file(head.path).has_value();
}

bool LivePages::serve(HttpConnection* connection, const HttpRequestHead& head,
                      const std::vector<std::string>& headers) {
  if (head.method == "GET" && head.path == "/events") {
    return stream(connection, head.query, headers);
  }
  WebReply reply;
  if (auto file = Web::file(head.path); file && head.method == "GET") {
    reply = std::move(*file);
  } else {
    reply = web_.answer(head.method, head.path);
  }
  return connection->send(start_of(reply.status, reply.type, headers) + "Content-Length: " +
                          std::to_string(reply.body.size()) + "\r\n\r\n" + reply.body);
}

bool LivePages::stream(HttpConnection* connection, const std::string& query,
                       const std::vector<std::string>& headers) {
  if (!connection->send(start_of(200, "text/event-stream", headers) +
                        "Transfer-Encoding: chunked\r\n\r\n")) {
    return false;
  }
  const auto feed = web_.feed(query);
  double next_sign = real_clock().now_s() + kHeartbeat;
  while (!stopping_ && !connection->gone()) {
    std::string text = feed->next();
    if (text.empty() && real_clock().now_s() > next_sign) text = ": still at it\n\n";
    if (!text.empty()) {
      if (!send_chunk(connection, text)) return false;
      next_sign = real_clock().now_s() + kHeartbeat;
    }
    ::usleep(kPollMicroseconds);
  }
  return false;
}

}  // namespace kernelpro
