// SPDX-License-Identifier: Apache-2.0
#include "write/model/sse.h"

#include <utility>

namespace kernelpro {

bool SseReader::feed(std::string_view bytes, const Sink& sink) {
  while (!failed_ && !bytes.empty()) {
    // The second half of a CRLF, possibly in the next chunk.
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > max_bytes_) {
      failed_ = true;
      break;
    }
    if (end == std::string_view::npos) {
      line_ += part;
      break;
    }
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (line_.empty()) {
      end_line(part, sink);
    } else {
      line_ += part;
      end_line(std::exchange(line_, {}), sink);
    }
  }
  return !failed_;
}

void SseReader::end_line(std::string_view line, const Sink& sink) {
  if (std::exchange(first_line_, false) && line.substr(0, 3) == "\xEF\xBB\xBF") {
    line.remove_prefix(3);
  }
  if (line.empty()) {
    SseEvent event = std::exchange(event_, {});
    if (std::exchange(has_data_, false)) sink(std::move(event));
    return;
  }
  const std::size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
  if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (field == "data") {
    if (event_.data.size() + value.size() + 1 > max_bytes_) {
      failed_ = true;
      return;
    }
    if (has_data_) event_.data += '\n';
    event_.data += value;
    has_data_ = true;
  } else if (field == "event") {
    event_.type = value;
  }
}

}  // namespace kernelpro
