// SPDX-License-Identifier: Apache-2.0
// Splits MCP's stdio transport into messages: one JSON text per line. Safe on any bytes. One thread
// per object.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kernelpro {

inline constexpr std::size_t kMaxFrameBytes = 8u << 20;

class FrameReader {
 public:
  explicit FrameReader(std::size_t max_bytes = kMaxFrameBytes) : max_bytes_(max_bytes) {}

  struct Sink {
    std::function<void(std::string&& frame)> frame;  // a line without its newline; never blank
    std::function<void()> too_large;                 // once per line, as soon as it is known
  };
  void feed(std::string_view bytes, const Sink& sink);
  // Buffered bytes of an unfinished line.
  std::size_t kept() const { return line_.size(); }

 private:
  std::size_t max_bytes_;
  std::string line_;
  bool skipping_ = false;  // the rest of a line that was too large
};

}  // namespace kernelpro
