// SPDX-License-Identifier: Apache-2.0
// Any bytes: a head is found or not, and then refused with a status or parsed. Its parts occur in
// the input, and it parses to the same after being written out again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "serve/http/message.h"

namespace {

using namespace kernelpro;

std::string written(const HttpRequestHead& head) {
  std::string text = head.method + ' ' + head.path + " HTTP/1.1\r\n";
  for (const auto& [name, value] : head.headers) text += name + ":" + value + "\r\n";
  return text + "\r\n";
}

void check_head(const HttpRequestHead& head, std::string_view bytes) {
  if (head.method.empty() || !head.path.starts_with('/')) std::abort();
  if (bytes.find(head.path) == std::string_view::npos) std::abort();
  if (head.path.find('?') != std::string::npos) std::abort();
  for (const auto& [name, value] : head.headers) {
    if (name.empty() || value.find_first_of("\r\n") != std::string::npos) std::abort();
    if (bytes.find(value) == std::string_view::npos) std::abort();
  }
  if (head.has_length != head.headers.contains("content-length")) std::abort();
  if (!head.has_length && head.content_length != 0) std::abort();
  const std::string text = written(head);
  if (head_end(text) != text.size()) std::abort();
  const auto again = read_head(text);
  const auto* same = std::get_if<HttpRequestHead>(&again);
  if (same == nullptr || same->method != head.method || same->path != head.path) std::abort();
  if (same->headers != head.headers || same->content_length != head.content_length) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = head_end(bytes);
  const bool found = end != std::string_view::npos;
  if (found && (end > size || end < 4)) std::abort();
  // A head is incomplete without its last byte.
  if (found && head_end(bytes.substr(0, end - 1)) != std::string_view::npos) std::abort();
  const auto read = read_head(bytes.substr(0, end));
  if (const auto* fault = std::get_if<HttpFault>(&read)) {
    if (fault->status < 400 || status_text(fault->status) == "Error") std::abort();
    if (fault->reason.empty()) std::abort();
    return 0;
  }
  const HttpRequestHead& head = std::get<HttpRequestHead>(read);
  check_head(head, bytes);
  is_address(host_name(head.header("host")));
  const std::string secret = head.header("authorization");
  if (!same_secret(secret, secret) || same_secret(secret, secret + "x")) std::abort();
  return 0;
}
