// SPDX-License-Identifier: Apache-2.0
// One of the two wire formats.
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

}  // namespace kernelpro
