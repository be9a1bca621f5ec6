// SPDX-License-Identifier: Apache-2.0
// The first byte decides how the rest is split. The events must not depend on the split, each of
// their lines is in the input, and nothing grows beyond the reader's limit.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "write/model/sse.h"

namespace {

constexpr std::size_t kMost = 100;

struct Read {
  std::vector<kernelpro::SseEvent> events;
  bool failed = false;
  bool within_event = false;
};

Read read(std::string_view bytes, std::size_t step) {
  Read result;
  kernelpro::SseReader reader(kMost);
  const auto keep = [&](kernelpro::SseEvent&& event) { result.events.push_back(std::move(event)); };
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    if (reader.feed(bytes.substr(at, step), keep) == reader.failed()) std::abort();
  }
  result.failed = reader.failed();
  result.within_event = reader.within_event();
  // Nothing comes after an error.
  const std::size_t before = result.events.size();
  if (result.failed && reader.feed("\n\ndata: more\n\n", keep)) std::abort();
  if (result.failed && result.events.size() != before) std::abort();
  return result;
}

void same(const Read& a, const Read& b) {
  if (a.failed != b.failed || a.events.size() != b.events.size()) std::abort();
  if (!a.failed && a.within_event != b.within_event) std::abort();
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    if (a.events[i].type != b.events[i].type || a.events[i].data != b.events[i].data) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Read whole = read(bytes, bytes.size());
  same(whole, read(bytes, 1));
  same(whole, read(bytes, 2 + data[0] % 32));
  for (const kernelpro::SseEvent& event : whole.events) {
    if (event.data.size() > kMost || event.type.size() > kMost) std::abort();
    if (bytes.find(event.type) == std::string_view::npos) std::abort();
    for (std::size_t at = 0; at <= event.data.size();) {
      const std::size_t end = std::min(event.data.find('\n', at), event.data.size());
      const std::string_view line = std::string_view(event.data).substr(at, end - at);
      if (bytes.find(line) == std::string_view::npos) std::abort();
      at = end + 1;
    }
  }
  return 0;
}
