// SPDX-License-Identifier: Apache-2.0
#include "core/proposal/call_outcome.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/error.h"
#include "base/rows.h"

namespace kernelpro {

namespace {

constexpr CallOutcomeRow kRows[] = {
    {.outcome = CallOutcome::kReply, .name = "reply"},
    {.outcome = CallOutcome::kNoIdeas, .name = "no-ideas"},
    {.outcome = CallOutcome::kNoCode, .name = "no-code", .by_model = true, .mendable = true},
    {.outcome = CallOutcome::kBadKnobs, .name = "bad-knobs", .by_model = true, .mendable = true},
    {.outcome = CallOutcome::kDuplicate, .name = "duplicate", .by_model = true},
    {.outcome = CallOutcome::kToolLoop, .name = "tool-loop", .by_model = true},
    {.outcome = CallOutcome::kOverloaded, .name = "overloaded"},
    {.outcome = CallOutcome::kRateLimited, .name = "rate-limited"},
    {.outcome = CallOutcome::kTimedOut, .name = "timed-out"},
    {.outcome = CallOutcome::kCutStream, .name = "cut-stream"},
    {.outcome = CallOutcome::kUnreachable, .name = "unreachable"},
    {.outcome = CallOutcome::kServerError, .name = "server-error"},
    {.outcome = CallOutcome::kRefusal, .name = "refusal", .by_model = true},
    {.outcome = CallOutcome::kEmpty, .name = "empty", .by_model = true},
    {.outcome = CallOutcome::kTruncated, .name = "truncated", .by_model = true},
    {.outcome = CallOutcome::kBadRequest, .name = "bad-request"},
    {.outcome = CallOutcome::kAuth, .name = "auth"},
    {.outcome = CallOutcome::kUnknownModel, .name = "unknown-model"},
    {.outcome = CallOutcome::kGarbage, .name = "garbage"},
    {.outcome = CallOutcome::kBudget, .name = "budget"},
    {.outcome = CallOutcome::kCancelled, .name = "cancelled"},
    {.outcome = CallOutcome::kUnknown, .name = "unknown"},
};

static_assert(rows_are_in_order(kRows, &CallOutcomeRow::outcome));

}  // namespace

const CallOutcomeRow& call_outcome_row(CallOutcome outcome) {
  const auto at = static_cast<std::size_t>(outcome);
  KP_ASSERT(at < std::size(kRows));
  return kRows[at];
}

std::string_view call_outcome_name(CallOutcome outcome) { return call_outcome_row(outcome).name; }

CallOutcome call_outcome_from_name(std::string_view name) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const CallOutcomeRow& each) { return each.name == name; });
  return row == std::end(kRows) ? CallOutcome::kUnknown : row->outcome;
}

}  // namespace kernelpro
