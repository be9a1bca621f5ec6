// SPDX-License-Identifier: Apache-2.0
// The first byte says how the rest is cut; the events must not depend on it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "model/sse.h"

namespace {

std::vector<kernelpro::SseEvent> events_of(std::string_view bytes, std::size_t step, bool* failed) {
  std::vector<kernelpro::SseEvent> events;
  kernelpro::SseReader reader(4096);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.feed(bytes.substr(at, step),
                [&](kernelpro::SseEvent&& event) { events.push_back(std::move(event)); });
  }
  *failed = reader.failed();
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  bool failed_whole = false;
  bool failed_cut = false;
  const auto whole = events_of(bytes, bytes.size(), &failed_whole);
  const auto cut = events_of(bytes, 1 + data[0] % 16, &failed_cut);
  if (failed_whole != failed_cut || whole.size() != cut.size()) std::abort();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].type != cut[i].type || whole[i].data != cut[i].data) std::abort();
    if (whole[i].data.size() > 4096) std::abort();
  }
  return 0;
}
