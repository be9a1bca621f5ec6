// SPDX-License-Identifier: Apache-2.0
// The first byte says how the rest is cut; the frames must not depend on it, and each must read as
// messages or as faults that can be sent.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "serve/frames.h"
#include "serve/rpc.h"

namespace {

constexpr std::size_t kMost = 512;

std::vector<std::string> frames_of(std::string_view bytes, std::size_t step) {
  std::vector<std::string> frames;
  kernelpro::FrameReader reader(kMost);
  const kernelpro::FrameReader::Sink sink{
      [&](std::string&& frame) { frames.push_back(std::move(frame)); },
      [&] { frames.push_back("(too large)"); }};
  for (std::size_t at = 0; at < bytes.size(); at += step) reader.feed(bytes.substr(at, step), sink);
  if (reader.kept() > kMost) std::abort();
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = frames_of(bytes, bytes.size());
  if (whole != frames_of(bytes, 1 + data[0] % 16)) std::abort();
  for (const std::string& frame : whole) {
    const kernelpro::RpcFrame read = kernelpro::read_rpc(frame);
    if (read.parts.empty()) std::abort();
    for (const auto& part : read.parts) {
      const auto* fault = std::get_if<kernelpro::RpcFault>(&part);
      if (fault != nullptr && !fault->answer.contains("error")) std::abort();
      const auto* message = std::get_if<kernelpro::RpcMessage>(&part);
      if (message != nullptr && !message->params.is_object()) std::abort();
      if (message != nullptr) kernelpro::dump_json(kernelpro::rpc_result(message->id, {}));
    }
  }
  return 0;
}
