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

CallOutcome outcome_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::kOverloaded:
      return CallOutcome::kOverloaded;
    case FailureKind::kRateLimited:
      return CallOutcome::kRateLimited;
    case FailureKind::kTimedOut:
      return CallOutcome::kTimedOut;
    case FailureKind::kCutStream:
      return CallOutcome::kCutStream;
    case FailureKind::kUnreachable:
      return CallOutcome::kUnreachable;
    case FailureKind::kServerError:
      return CallOutcome::kServerError;
    case FailureKind::kRefusal:
      return CallOutcome::kRefusal;
    case FailureKind::kEmpty:
      return CallOutcome::kEmpty;
    case FailureKind::kTruncated:
      return CallOutcome::kTruncated;
    case FailureKind::kBadRequest:
      return CallOutcome::kBadRequest;
    case FailureKind::kAuth:
      return CallOutcome::kAuth;
    case FailureKind::kUnknownModel:
      return CallOutcome::kUnknownModel;
    case FailureKind::kGarbage:
      return CallOutcome::kGarbage;
    case FailureKind::kBudget:
      return CallOutcome::kBudget;
    case FailureKind::kCancelled:
      return CallOutcome::kCancelled;
  }
  return CallOutcome::kUnknown;
}

std::string_view failure_name(FailureKind kind) { return call_outcome_name(outcome_of(kind)); }

std::string Failure::text() const {
  std::string result = std::string(failure_name(kind)) + ": " + message;
  if (!next.empty()) result += "\n  next: " + next;
  return result;
}

std::int64_t Counts::failed() const {
  return std::accumulate(failures.begin(), failures.end(), std::int64_t{0});
}

}  // namespace kernelpro
