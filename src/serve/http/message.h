// SPDX-License-Identifier: Apache-2.0
// A strict parser for HTTP/1.1 requests. Rejects everything that a proxy might parse differently
// (folded lines, chunked bodies, repeated headers that matter). Safe on any bytes. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace kernelpro {

inline constexpr std::size_t kMaxHeadBytes = 16 << 10;

struct HttpRequestHead {
  std::string method;
  std::string path;   // without the query
  std::string query;  // what follows "?"
  bool keep_alive = true;
  bool expects_continue = false;
  std::size_t content_length = 0;
  bool has_length = false;
  std::map<std::string, std::string> headers;  // names in lower case; the last one of each

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct HttpFault {
  int status = 400;
  std::string reason;
};

// Length of the head at the start of `bytes`, with its empty line; npos: incomplete.
std::size_t head_end(std::string_view bytes);
// `head`: up to and including the empty line.
std::variant<HttpRequestHead, HttpFault> read_head(std::string_view head);

std::string_view status_text(int status);

// "localhost" for "localhost:80", "[::1]" for "[::1]:80"; "" when it is not a host.
std::string host_name(const std::string& host);
bool is_address(const std::string& name);  // IPv4, or IPv6 in brackets
// Constant time for texts of equal length.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace kernelpro
