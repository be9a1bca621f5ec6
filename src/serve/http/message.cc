// SPDX-License-Identifier: Apache-2.0
#include "serve/http/message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace kernelpro {

namespace {

// RFC 9110's tchar.
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

// Programs disagree on which of two such headers counts, so these must not repeat.
bool may_repeat(const std::string& name) {
  for (const char* once : {"host", "content-length", "authorization", "origin", "mcp-session-id",
                           "mcp-protocol-version", "content-type", "connection"}) {
    if (name == once) return false;
  }
  return true;
}

}  // namespace

std::size_t head_end(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? end : end + 4;
}

std::variant<HttpRequestHead, HttpFault> read_head(std::string_view head) {
  HttpRequestHead request;
  std::size_t end = head.find("\r\n");
  if (end == std::string_view::npos) return HttpFault{400, "the request has no lines"};
  const std::vector<std::string> parts = split(head.substr(0, end), ' ');
  if (parts.size() != 3 || !is_token(parts[0]) || !parts[1].starts_with('/') ||
      !is_visible(parts[1])) {
    return HttpFault{400, "the request line is not METHOD /path HTTP/1.1"};
  }
  if (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0") {
    return HttpFault{505, "this server speaks HTTP/1.1"};
  }
  request.method = parts[0];
  const std::size_t mark = parts[1].find('?');
  request.path = parts[1].substr(0, mark);
  if (mark != std::string::npos) request.query = parts[1].substr(mark + 1);
  request.keep_alive = parts[2] == "HTTP/1.1";
  for (std::size_t at = end + 2;; at = end + 2) {
    end = head.find("\r\n", at);
    if (end == std::string_view::npos || end == at) break;
    const std::string_view line = head.substr(at, end - at);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) || !is_visible(line)) {
      return HttpFault{400, "a header line is not Name: value"};
    }
    const std::string name = small_letters(line.substr(0, colon));
    if (request.headers.contains(name) && !may_repeat(name)) {
      return HttpFault{400, "the header " + name + " appears twice"};
    }
    request.headers[name] = std::string(trim(line.substr(colon + 1)));
  }
  if (request.headers.contains("transfer-encoding")) {
    return HttpFault{501, "bodies need a Content-Length; chunked ones are not read"};
  }
  if (const auto length = request.headers.find("content-length"); length != request.headers.end()) {
    const std::string& text = length->second;
    const auto [last, error] =
        std::from_chars(text.data(), text.data() + text.size(), request.content_length);
    if (error != std::errc() || last != text.data() + text.size()) {
      return HttpFault{400, "the Content-Length is not a number"};
    }
    request.has_length = true;
  }
  const std::string connection = small_letters(request.header("connection"));
  if (contains(connection, "close")) request.keep_alive = false;
  request.expects_continue = small_letters(request.header("expect")) == "100-continue";
  return request;
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

std::string host_name(const std::string& host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string::npos ? "" : small_letters(host.substr(0, end + 1));
  }
  return small_letters(host.substr(0, host.find(':')));
}

bool is_address(const std::string& name) {
  unsigned char out[16];
  if (name.starts_with('[') && name.ends_with(']')) {
    return ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), out) == 1;
  }
  return ::inet_pton(AF_INET, name.c_str(), out) == 1;
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ other));
  }
  return difference == 0;
}

}  // namespace kernelpro
