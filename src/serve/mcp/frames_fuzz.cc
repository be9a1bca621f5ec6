// SPDX-License-Identifier: Apache-2.0
// The first byte sets how the rest is split. The frames must not depend on it; each occurs in the
// input and parses to messages or to faults, whose answers are one line of JSON each.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "serve/mcp/frames.h"
#include "serve/mcp/rpc.h"

namespace {

constexpr std::size_t kMost = 512;
const std::string kTooLarge = "\n";  // never a frame

std::vector<std::string> frames_of(std::string_view bytes, std::size_t step) {
  std::vector<std::string> frames;
  kernelpro::FrameReader reader(kMost);
  const kernelpro::FrameReader::Sink sink{
      [&](std::string&& frame) { frames.push_back(std::move(frame)); },
      [&] { frames.push_back(kTooLarge); }};
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.feed(bytes.substr(at, step), sink);
    if (reader.kept() > kMost) std::abort();
  }
  return frames;
}

// An answer is sent as one line that parses back to the same JSON.
void check_sendable(const kernelpro::Json& answer) {
  const std::string line = kernelpro::dump_json(answer);
  if (line.find('\n') != std::string::npos) std::abort();
  const auto again = kernelpro::parse_json(line);
  if (!again || *again != answer) std::abort();
}

void check_message(const kernelpro::RpcMessage& message) {
  using Kind = kernelpro::RpcMessage::Kind;
  if (!message.params.is_object()) std::abort();
  if ((message.kind == Kind::kNotification) != message.id.is_null()) std::abort();
  if (!message.id.is_null() && !message.id.is_string() && !message.id.is_number_integer()) {
    std::abort();
  }
  check_sendable(kernelpro::rpc_result(message.id, message.params));
  check_sendable(kernelpro::rpc_error(message.id, kernelpro::kRpcMethodNotFound, message.method));
}

void check_fault(const kernelpro::Json& answer) {
  const int code = answer.at("error").at("code").get<int>();
  if (code != kernelpro::kRpcParseError && code != kernelpro::kRpcInvalidRequest) std::abort();
  if (answer.at("error").at("message").get<std::string>().empty()) std::abort();
  check_sendable(answer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = frames_of(bytes, bytes.size());
  if (whole != frames_of(bytes, 1) || whole != frames_of(bytes, 2 + data[0] % 64)) std::abort();
  for (const std::string& frame : whole) {
    if (frame == kTooLarge) continue;
    if (frame.size() > kMost || bytes.find(frame) == std::string_view::npos) std::abort();
    if (frame.find('\n') != std::string::npos) std::abort();
    const kernelpro::RpcFrame read = kernelpro::read_rpc(frame);
    if (read.parts.empty() || read.parts.size() > 100) std::abort();
    if (!read.batch && read.parts.size() != 1) std::abort();
    for (const auto& part : read.parts) {
      if (const auto* fault = std::get_if<kernelpro::RpcFault>(&part)) check_fault(fault->answer);
      const auto* message = std::get_if<kernelpro::RpcMessage>(&part);
      if (message != nullptr) check_message(*message);
    }
  }
  return 0;
}
