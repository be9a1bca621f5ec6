// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 requests as a small server needs them: strict, and nothing that proxies might read
// otherwise (no folded lines, no chunked bodies, no repeated headers that matter). Any bytes are
// safe. Pure.
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
  std::string path;  // without the query
  bool keep_alive = true;
  bool expects_continue = false;
  std::size_t content_length = 0;
  bool has_length = false;
  std::map<std::string, std::string> headers;  // names in small letters; the last one of each

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct HttpFault {
  int status = 400;
  std::string reason;
};

// Length of a head with its empty line at the start of `bytes`; npos: not there yet.
std::size_t head_end(std::string_view bytes);
// `head`: up to and with the empty line.
std::variant<HttpRequestHead, HttpFault> read_head(std::string_view head);

std::string_view status_text(int status);

// "localhost" of "localhost:80", "[::1]" of "[::1]:80"; "" when it is no host.
std::string host_name(const std::string& host);
bool is_address(const std::string& name);  // of the family IPv4, or IPv6 in brackets
// In the same time for all texts of a length.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace kernelpro
