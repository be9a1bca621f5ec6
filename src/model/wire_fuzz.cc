// SPDX-License-Identifier: Apache-2.0
// Any bytes as a server's reply, as a stream and whole, in both formats: never a crash, and what is
// accepted can be sent back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "model/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kernelpro;
  if (size < 1) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const Api api : {Api::kAnthropic, Api::kOpenAi}) {
    ReplyReader reader(wire_for(api), {});
    const std::size_t half = bytes.size() / 2;
    reader.bytes((data[0] & 1) != 0, std::string_view(bytes).substr(0, half));
    reader.bytes((data[0] & 1) != 0, std::string_view(bytes).substr(half));
    const ChatResult result = reader.finish((data[0] & 2) != 0, 100);
    if (reader.usage().total() < 0) std::abort();
    if (!result) {
      if (result.error().message.empty()) std::abort();
      continue;
    }
    ChatRequest request;
    request.messages.push_back({Speaker::kAssistant, result->text, result->calls, {}});
    ModelSpec spec;
    spec.model = "m";
    if (!wire_for(api).encode(spec, request)) std::abort();
  }
  static_cast<void>(failure_of_status(400 + (data[0] >> 2), bytes));
  return 0;
}
