// SPDX-License-Identifier: Apache-2.0
// What is asked of a language model and what comes back, whoever serves it. Plain values: copy them
// freely, one thread per object. Tokens are counted as the server counts them; money is US dollars.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace kernelpro {

enum class Speaker { kUser, kAssistant };

// The model asks for a tool. `arguments` is the JSON text of an object, always.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments = "{}";
};

// What the tool answered.
struct ToolResult {
  std::string call_id;
  std::string text;
  bool failed = false;
};

// Calls belong to the assistant's messages, results to the user's message that follows.
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
  std::optional<double> temperature;  // none: the server's own
  std::vector<std::string> stop;
  // What later requests will repeat word for word: the tools and the system text, and the first
  // `stable_messages` messages. Servers that keep prefixes on demand are asked to keep these.
  bool stable_system = true;
  int stable_messages = 0;
};

// The four numbers never overlap: `input` leaves out what the cache served or stored.
struct Usage {
  std::int64_t input = 0;
  std::int64_t cache_read = 0;
  std::int64_t cache_written = 0;
  std::int64_t output = 0;
  // Some of it is our estimate, since the stream ended before the server told.
  bool estimated = false;

  std::int64_t total() const { return input + cache_read + cache_written + output; }
  Usage& operator+=(const Usage& other);
  bool operator==(const Usage&) const = default;
};

enum class StopReason { kEnd, kToolCalls, kStopSequence };

struct ChatReply {
  std::string text;
  std::vector<ToolCall> calls;
  StopReason stop = StopReason::kEnd;
  std::string model;               // as the server names it
  Usage usage;                     // of the attempt that succeeded
  Usage wasted;                    // of the attempts before it, which is paid as well
  std::optional<double> cost_usd;  // of both; none: the price is unknown
  int attempts = 1;
  double seconds = 0;  // with all waiting
};

enum class FailureKind {
  kOverloaded,    // the server has no room (503, 529)
  kRateLimited,   // 429
  kTimedOut,      // no byte for too long, or the deadline passed
  kCutStream,     // the connection ended within a reply
  kUnreachable,   // no connection, or none that is trusted
  kServerError,   // 500, 502, 504
  kRefusal,       // the model would not answer
  kEmpty,         // neither text nor tool calls
  kTruncated,     // max_tokens or the context was used up; `partial` has what came
  kBadRequest,    // the server cannot take this request
  kAuth,          // no key, a wrong one, or an account without credit
  kUnknownModel,  // there is no such model at that address
  kGarbage,       // bytes that are no reply of this API, or too many of them
  kBudget,        // tokens, money or calls are used up; nothing was sent
  kCancelled,     // the caller asked to stop
};
inline constexpr int kFailureKinds = 15;

// "rate-limited", ...
std::string_view failure_name(FailureKind kind);

struct Failure {
  FailureKind kind = FailureKind::kGarbage;
  std::string message;  // one sentence or two, printable, without the key
  std::string next;     // what the user can do about it
  int status = 0;       // of HTTP; 0: there was none
  int attempts = 0;     // requests that were sent
  Usage wasted;         // paid without a reply
  std::optional<double> cost_usd;
  std::string partial;     // kTruncated: the text so far
  bool retryable = false;  // the same request may succeed later

  std::string text() const;  // "rate-limited: message\n  next: ..."
};

using ChatResult = tl::expected<ChatReply, Failure>;

// What a client has done so far. calls = replies + all of failures.
struct Counts {
  std::int64_t calls = 0;
  std::int64_t replies = 0;
  std::int64_t attempts = 0;
  std::array<std::int64_t, kFailureKinds> failures{};  // calls that ended so
  std::array<std::int64_t, kFailureKinds> retried{};   // attempts that ended so and were repeated
  Usage reported;                                      // by servers
  Usage estimated;                                     // by us, where servers did not tell
  std::int64_t estimated_attempts = 0;
  double cost_usd = 0;
  bool cost_known = true;  // false: some of it has no known price and is not in cost_usd

  std::int64_t failed() const;
};

}  // namespace kernelpro
