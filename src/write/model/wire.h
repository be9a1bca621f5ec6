// SPDX-License-Identifier: Apache-2.0
// The wire formats: writes requests and reads replies, whole or as a stream. Pure; a reader is
// for one reply and one thread. The server may be broken or hostile: any bytes lead to a reply or
// one failure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "write/model/chat.h"
#include "write/model/failure.h"
#include "write/model/format.h"
#include "write/model/spec.h"
#include "write/model/sse.h"

namespace kernelpro {

const Wire& wire_for(std::string_view api);  // by its name

// Reads the body of a 200 as it arrives.
class ReplyReader {
 public:
  explicit ReplyReader(const Wire& wire) : wire_(wire) {}

  void bytes(bool says_event_stream, std::string_view part);
  // Call after the last byte. `cut`: the connection ended too early. A stream with a stop reason
  // counts as complete even then. Counts missing from the server are estimated; `request_bytes` is
  // the size of the body.
  ChatResult finish(bool cut, std::size_t request_bytes);
  bool complete() const { return draft_.ended || draft_.failure.has_value() || garbage_; }
  // After finish(): the cost of the attempt, whatever its result.
  const Usage& usage() const { return draft_.usage; }

 private:
  void event(SseEvent&& event);
  void estimate(std::size_t request_bytes);
  bool looks_paid() const;
  ChatResult judge();

  const Wire& wire_;
  SseReader sse_;
  Draft draft_;
  std::string body_;  // if it is not a stream
  bool streaming_ = false;
  bool garbage_ = false;
};

// Estimated tokens when there is no count: one per three bytes, rounded up. That is more than prose
// and less than dense code takes.
std::int64_t estimated_tokens(std::size_t bytes);

}  // namespace kernelpro
