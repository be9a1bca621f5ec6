// SPDX-License-Identifier: Apache-2.0
// What became of a question to a model. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace kernelpro {

enum class CallOutcome {
  kReply,
  // The answer is unusable.
  kNoIdeas,    // a plan without ideas
  kNoCode,     // no source
  kBadKnobs,   // a source whose knobs cannot be read
  kDuplicate,  // a source that was measured already
  kToolLoop,   // the model went on looking things up
  // There is no answer: write/model/chat.h says why each happens.
  kOverloaded,
  kRateLimited,
  kTimedOut,
  kCutStream,
  kUnreachable,
  kServerError,
  kRefusal,
  kEmpty,
  kTruncated,
  kBadRequest,
  kAuth,
  kUnknownModel,
  kGarbage,
  kBudget,
  kCancelled,
  kUnknown,  // a name that this version does not know
};

struct CallOutcomeRow {
  CallOutcome outcome;
  std::string_view name;  // in stores, reports and messages: "rate-limited"
  // The model answered this idea, and the answer is of no use. Any other failure is the server's or
  // the user's and says nothing about the idea.
  bool by_model = false;
  // Asking again with the answer may help.
  bool mendable = false;
};

const CallOutcomeRow& call_outcome_row(CallOutcome outcome);
std::string_view call_outcome_name(CallOutcome outcome);
CallOutcome call_outcome_from_name(std::string_view name);  // kUnknown unless a row has it

}  // namespace kernelpro
