// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/frames.h"

#include <utility>

#include "base/text.h"

namespace kernelpro {

void FrameReader::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (!skipping_ && line_.size() + part.size() > max_bytes_) {
      skipping_ = true;
      std::string().swap(line_);
      sink.too_large();
    }
    if (!skipping_) line_ += part;
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    std::string line = std::exchange(line_, std::string());
    const bool whole = !std::exchange(skipping_, false);
    if (whole && !trim(line).empty()) sink.frame(std::move(line));
  }
}

}  // namespace kernelpro
