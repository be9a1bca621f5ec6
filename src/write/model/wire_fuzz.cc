// SPDX-License-Identifier: Apache-2.0
// Any bytes as a server's reply, as a stream and whole, in every format: the result does not depend
// on how it is split, a failure has advice, and an accepted reply can be sent back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "write/model/apis.h"
#include "write/model/wire.h"

namespace {

using namespace kernelpro;

struct Outcome {
  ChatResult result;
  Usage usage;
};

Outcome read(std::string_view api, const std::string& bytes, std::size_t step,
             std::uint8_t options) {
  ReplyReader reader(wire_for(api));
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.bytes((options & 1) != 0, std::string_view(bytes).substr(at, step));
  }
  const ChatResult result = reader.finish((options & 2) != 0, 100);
  return {result, reader.usage()};
}

void check_same(const Outcome& a, const Outcome& b) {
  if (a.result.has_value() != b.result.has_value() || !(a.usage == b.usage)) std::abort();
  if (!a.result) {
    if (a.result.error().text() != b.result.error().text()) std::abort();
    return;
  }
  if (a.result->text != b.result->text || a.result->calls.size() != b.result->calls.size()) {
    std::abort();
  }
  for (std::size_t i = 0; i < a.result->calls.size(); ++i) {
    const ToolCall& one = a.result->calls[i];
    const ToolCall& other = b.result->calls[i];
    if (one.name != other.name || one.arguments != other.arguments) std::abort();
  }
}

void check_failure(const Failure& failure) {
  if (failure.message.empty() || failure.next.empty()) std::abort();
  if (printable(failure.message) != failure.message) std::abort();
  if (failure.message.size() > 2000) std::abort();
}

void check_reply(std::string_view api, const ChatReply& reply) {
  ChatRequest request;
  request.messages.push_back({Speaker::kAssistant, reply.text, reply.calls, {}});
  ModelSpec spec;
  spec.model = "m";
  if (!wire_for(api).encode(spec, request)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const ApiRow& row : apis()) {
    const std::string_view api = row.name;
    const Outcome whole = read(api, bytes, bytes.size(), data[0]);
    check_same(whole, read(api, bytes, 1, data[0]));
    check_same(whole, read(api, bytes, bytes.size() / 2 + 1, data[0]));
    if (whole.usage.total() < 0) std::abort();
    if (whole.result) {
      check_reply(api, *whole.result);
    } else {
      check_failure(whole.result.error());
    }
  }
  check_failure(failure_of_status(400 + (data[0] >> 2), bytes));
  return 0;
}
