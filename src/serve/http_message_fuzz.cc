// SPDX-License-Identifier: Apache-2.0
// Whatever comes over the socket: a head is found or not, and read or refused with a status.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "serve/http_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = head_end(bytes);
  if (end != std::string_view::npos && (end > size || end < 4)) std::abort();
  const auto read = read_head(end == std::string_view::npos ? bytes : bytes.substr(0, end));
  if (const auto* fault = std::get_if<HttpFault>(&read)) {
    if (fault->status < 400 || status_text(fault->status) == "Error") std::abort();
    return 0;
  }
  const HttpRequestHead& head = std::get<HttpRequestHead>(read);
  if (head.method.empty() || !head.path.starts_with('/')) std::abort();
  for (const auto& [name, value] : head.headers) {
    if (name.empty() || value.find('\n') != std::string::npos) std::abort();
  }
  is_address(host_name(head.header("host")));
  same_secret(head.header("authorization"), "secret");
  return 0;
}
