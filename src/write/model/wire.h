// SPDX-License-Identifier: Apache-2.0
// The two wire formats: how a request is written, how a reply is read, whole or as a stream. Pure;
// readers are for one reply and one thread. What is read comes from a server that may be broken or
// hostile: any bytes end in a reply or one failure.
#pragma once

#include <functional>
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

const Wire& wire_for(Api api);

// Reads the bytes of a 200 as they arrive.
class ReplyReader {
 public:
  // `on_text` is told of text as it comes; may be empty.
  ReplyReader(const Wire& wire, std::function<void(std::string_view)> on_text)
      : wire_(wire), on_text_(std::move(on_text)) {}

  void bytes(bool says_event_stream, std::string_view part);
  // After the last byte. `cut`: the connection ended too early. A stream whose stop reason has come
  // is whole even so. What the server did not count is estimated; `request_bytes` is the body's
  // size.
  ChatResult finish(bool cut, std::size_t request_bytes);
  bool complete() const { return draft_.ended || draft_.failure.has_value() || garbage_; }
  // Once finish() was called: what the attempt cost, whatever came of it.
  const Usage& usage() const { return draft_.usage; }

 private:
  void event(SseEvent&& event);
  void estimate(std::size_t request_bytes);
  bool looks_paid() const;
  ChatResult judge();

  const Wire& wire_;
  std::function<void(std::string_view)> on_text_;
  SseReader sse_;
  Draft draft_;
  std::string body_;  // when it is no stream
  bool streaming_ = false;
  bool garbage_ = false;
};

// Tokens of that many bytes, where nobody counted them: one for three bytes begun, which is more
// than prose and less than dense code takes.
std::int64_t estimated_tokens(std::size_t bytes);

}  // namespace kernelpro
