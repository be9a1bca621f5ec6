// SPDX-License-Identifier: Apache-2.0
// Server-sent events (the event-stream format of the HTML standard), parsed as bytes arrive, in
// chunks of any size. Lines end with LF, CR or CRLF; a byte-order mark at the start, comments and
// unknown fields are skipped; an event cut off by the end of the stream is dropped. One thread per
// object.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kernelpro {

struct SseEvent {
  std::string type;  // "" without an event field
  std::string data;  // data lines, joined by LF
};

class SseReader {
 public:
  // An event or line longer than `max_bytes` is an error: nothing is read after it.
  explicit SseReader(std::size_t max_bytes = 16u << 20) : max_bytes_(max_bytes) {}

  using Sink = std::function<void(SseEvent&&)>;
  // Passes each complete event to `sink`. False: an error, now or earlier.
  bool feed(std::string_view bytes, const Sink& sink);
  bool failed() const { return failed_; }
  // Whether bytes of an incomplete event are buffered.
  bool within_event() const { return !line_.empty() || has_data_ || !event_.type.empty(); }

 private:
  void end_line(std::string_view line, const Sink& sink);

  std::size_t max_bytes_;
  std::string line_;  // not terminated yet
  SseEvent event_;
  bool has_data_ = false;
  bool after_cr_ = false;
  bool first_line_ = true;
  bool failed_ = false;
};

}  // namespace kernelpro
