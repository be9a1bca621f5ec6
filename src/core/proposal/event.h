// SPDX-License-Identifier: Apache-2.0
// What a run tells of while it goes on. Pure.
#pragma once

#include <string_view>

namespace kernelpro {

enum class Event {
  kPrepared,
  kEvaluated,
  kBest,     // a candidate is the best so far
  kBusy,     // other work disturbs the timing; told once
  kWaiting,  // for a writer
  kModel,    // an unusable answer
  kRefused,  // an unusable reply in the exchange
  kNote,     // anything else that is worth a line
  kStopped,
  kConfirmed,
  kUnconfirmed,  // a winner did not hold up in fresh processes; the previous best is tried
};

std::string_view event_name(Event event);  // on displays and in JSON: "evaluated"

}  // namespace kernelpro
