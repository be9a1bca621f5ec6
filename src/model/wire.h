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
#include "model/chat.h"
#include "model/spec.h"
#include "model/sse.h"

namespace kernelpro {

// What has been read of a reply.
struct Draft {
  std::string text;
  std::string refusal;
  std::vector<ToolCall> calls;  // arguments as they came, not checked yet
  std::string stop;             // the server's word; empty: it has not come
  std::string model;
  Usage usage;
  bool input_told = false;         // usage has the server's own count of the input
  bool output_told = false;        // ... and the final one of the output
  bool ended = false;              // nothing more will come
  std::int64_t seen_bytes = 0;     // of text and arguments, also of kinds that are not kept
  std::optional<Failure> failure;  // the server told of one within the reply
};

// One of the formats. Stateless.
class Wire {
 public:
  virtual ~Wire() = default;
  // What follows the base URL.
  virtual std::string path() const = 0;
  virtual std::vector<std::string> headers(const std::string& key) const = 0;
  // Fails with kBadInput when a schema or arguments are no JSON object.
  virtual Result<std::string> encode(const ModelSpec& spec, const ChatRequest& request) const = 0;
  // One event of a stream, and a whole body, added to `draft`. False: not of this format.
  virtual bool read_event(const SseEvent& event, Draft* draft) const = 0;
  virtual bool read_body(const std::string& json, Draft* draft) const = 0;
};
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

// A reply with another status than 200. `body` may be anything.
Failure failure_of_status(int status, const std::string& body);
// A failure that a server describes in JSON: {"type": "overloaded_error", "message": ...} or
// {"code": 502, "message": ...}. `status`: of HTTP, 200 within a reply.
Failure failure_of_error(int status, const std::string& type, const std::string& code,
                         const std::string& message);
// What the user can do about a failure of this kind.
std::string next_step(FailureKind kind);

// Tokens of that many bytes, where nobody counted them: one for three bytes begun, which is more
// than prose and less than dense code takes.
std::int64_t estimated_tokens(std::size_t bytes);

}  // namespace kernelpro
