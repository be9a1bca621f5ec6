// SPDX-License-Identifier: Apache-2.0
// Whether a run achieved anything, and what to do if it did not. Pure.
#pragma once

#include <string>

#include "run/proposers.h"
#include "run/result.h"
#include "run/store/settings.h"
#include "search/stoppers.h"

namespace kernelpro {

struct RunFacts {
  bool interrupted = false;
  bool only_replies = false;  // `measure`: the replies found in the exchange folder
  int evaluated_now = 0;      // in this sitting
  bool confirmed = false;     // in this sitting, and in none before
};

// Why a search ends that has nothing to add to any candidate, and what would go on.
std::string why_exhausted(const Standing& standing, const ProposerRow& proposer);

// Sets `end` and `next` of `result`; its other fields must be filled in.
void judge_end(const RunSettings& settings, const RunFacts& facts, RunResult* result);

}  // namespace kernelpro
