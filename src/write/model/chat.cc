// SPDX-License-Identifier: Apache-2.0
#include "write/model/chat.h"

#include <numeric>

namespace kernelpro {

Usage& Usage::operator+=(const Usage& other) {
  input += other.input;
  cache_read += other.cache_read;
  cache_written += other.cache_written;
  output += other.output;
  estimated = estimated || other.estimated;
  return *this;
}

std::string_view failure_name(FailureKind kind) {
  static constexpr std::array<std::string_view, kFailureKinds> names = {
      "overloaded",   "rate-limited",  "timed-out", "cut-stream", "unreachable",
      "server-error", "refusal",       "empty",     "truncated",  "bad-request",
      "auth",         "unknown-model", "garbage",   "budget",     "cancelled"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string Failure::text() const {
  std::string result = std::string(failure_name(kind)) + ": " + message;
  if (!next.empty()) result += "\n  next: " + next;
  return result;
}

std::int64_t Counts::failed() const {
  return std::accumulate(failures.begin(), failures.end(), std::int64_t{0});
}

}  // namespace kernelpro
