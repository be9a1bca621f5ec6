// SPDX-License-Identifier: Apache-2.0
// Requests to a language model and its replies, independent of the server. Plain values: copy them
// freely, one thread per object. Tokens are counted as the server counts them; money is US dollars.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "core/proposal/call_outcome.h"

namespace kernelpro {

enum class Speaker { kUser, kAssistant };

// A tool call by the model. `arguments` is always the JSON text of an object.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments = "{}";
};

// The tool's answer.
struct ToolResult {
  std::string call_id;
  std::string text;
  bool failed = false;
};

// Assistant messages hold calls; the user message that follows holds the results.
struct ChatMessage {
  Speaker role = Speaker::kUser;
  std::string text;
  std::vector<ToolCall> calls;
  std::vector<ToolResult> results;
};

struct ToolSpec {
  std::string name;
  std::string description;
  std::string schema = R"({"type":"object"})";  // JSON Schema of the arguments
};

struct ChatRequest {
  std::string system;
  std::vector<ChatMessage> messages;
  std::vector<ToolSpec> tools;
  int max_tokens = 8192;
  std::optional<double> temperature;  // none: the server's default
  // Later requests will repeat verbatim the tools, the system text and the first `stable_messages`
  // messages. Servers that cache prefixes on request are asked to cache them.
  int stable_messages = 0;
};

// The four counts never overlap: `input` excludes what the cache served or stored.
struct Usage {
  std::int64_t input = 0;
  std::int64_t cache_read = 0;
  std::int64_t cache_written = 0;
  std::int64_t output = 0;
  // Partly our estimate: the stream ended before the server's count.
  bool estimated = false;

  std::int64_t total() const { return input + cache_read + cache_written + output; }
  Usage& operator+=(const Usage& other);
  bool operator==(const Usage&) const = default;
};

struct ChatReply {
  std::string text;
  std::vector<ToolCall> calls;
  std::string model;               // as reported by the server
  Usage usage;                     // of the attempt that succeeded
  Usage wasted;                    // of failed attempts, which are paid as well
  std::optional<double> cost_usd;  // of both; none: unknown price
  int attempts = 1;
  double seconds = 0;  // including all waits
};

enum class FailureKind {
  kOverloaded,    // the server is out of capacity (503, 529)
  kRateLimited,   // 429
  kTimedOut,      // no byte for too long, or past the deadline
  kCutStream,     // the connection ended inside a reply
  kUnreachable,   // no connection, or no trusted one
  kServerError,   // 500, 502, 504
  kRefusal,       // the model declined to answer
  kEmpty,         // neither text nor tool calls
  kTruncated,     // max_tokens or the context ran out; `partial` has the text so far
  kBadRequest,    // the server rejects this request
  kAuth,          // a missing or wrong key, or an account without credit
  kUnknownModel,  // no such model at that address
  kGarbage,       // not a reply of this API, or too many bytes
  kBudget,        // tokens, money or calls ran out; nothing was sent
  kCancelled,     // the caller asked to stop
};
inline constexpr int kFailureKinds = 15;

CallOutcome outcome_of(FailureKind kind);
std::string_view failure_name(FailureKind kind);  // call_outcome_name: "rate-limited", ...

struct Failure {
  FailureKind kind = FailureKind::kGarbage;
  std::string message;  // one or two sentences, printable, without the key
  std::string next;     // what the user can do about it
  int status = 0;       // HTTP status; 0: there was none
  int attempts = 0;     // requests sent
  Usage wasted;         // paid without a reply
  std::optional<double> cost_usd;
  std::string partial;     // kTruncated: the text so far
  bool retryable = false;  // the same request may succeed later

  std::string text() const;  // "rate-limited: message\n  next: ..."
};

using ChatResult = tl::expected<ChatReply, Failure>;

// A client's totals. calls = replies + sum of failures.
struct Counts {
  std::int64_t calls = 0;
  std::int64_t replies = 0;
  std::int64_t attempts = 0;
  std::array<std::int64_t, kFailureKinds> failures{};  // calls that ended this way
  std::array<std::int64_t, kFailureKinds> retried{};   // attempts that ended so and were retried
  Usage reported;                                      // by servers
  Usage estimated;                                     // by us, for lack of a server's count
  std::int64_t estimated_attempts = 0;
  double cost_usd = 0;
  bool cost_known = true;  // false: part has no known price and is not in cost_usd

  std::int64_t failed() const;
};

}  // namespace kernelpro
