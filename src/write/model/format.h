// SPDX-License-Identifier: Apache-2.0
// Interface of the wire formats.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "write/model/chat.h"
#include "write/model/spec.h"
#include "write/model/sse.h"

namespace kernelpro {

// The part of a reply read so far.
struct Draft {
  std::string text;
  std::string refusal;
  std::vector<ToolCall> calls;  // arguments as received, not checked yet
  std::string stop;             // the server's word; "" = not received yet
  std::string model;
  Usage usage;
  bool input_told = false;         // usage has the server's count of the input
  bool output_told = false;        // ... and its final count of the output
  bool ended = false;              // nothing more will come
  std::int64_t seen_bytes = 0;     // of text and arguments, including discarded kinds
  std::optional<Failure> failure;  // reported by the server inside the reply
};

// One of the formats. Stateless.
class Wire {
 public:
  virtual ~Wire() = default;
  // Appended to the base URL.
  virtual std::string path() const = 0;
  virtual std::vector<std::string> headers(const std::string& key) const = 0;
  // Fails with kBadInput when a schema or arguments are not a JSON object.
  virtual Result<std::string> encode(const ModelSpec& spec, const ChatRequest& request) const = 0;
  // Adds one event of a stream, or a whole body, to `draft`. False: not of this format.
  virtual bool read_event(const SseEvent& event, Draft* draft) const = 0;
  virtual bool read_body(const std::string& json, Draft* draft) const = 0;
};

}  // namespace kernelpro
