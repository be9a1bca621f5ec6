// SPDX-License-Identifier: Apache-2.0
// Whether a run achieved anything, and what to do when it did not. Pure.
#pragma once

#include "run/result.h"
#include "run/store/settings.h"

namespace kernelpro {

struct RunFacts {
  bool interrupted = false;
  bool only_replies = false;  // `measure`: the replies that lie in the exchange folder
  int evaluated_now = 0;      // in this sitting
};

// Sets `end` and `next` of `result`, whose other fields are filled in.
void judge_end(const RunSettings& settings, const RunFacts& facts, RunResult* result);

}  // namespace kernelpro
