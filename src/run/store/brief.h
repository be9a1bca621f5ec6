// SPDX-License-Identifier: Apache-2.0
// The part of each candidate that a run needs to continue, as columns of the store: a resume reads
// JSON only for the few candidates that are asked for. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "core/proposal/proposal.h"

namespace kernelpro {

// The part of a diagnosis that a search uses (search/search.h).
struct Promise {
  bool stop = false;  // nothing is left to win
  double likely = 0;  // best speed-up among findings with a prescription; 0: there is none
  double upper = 0;
};
Promise promise_of(const Diagnosis& diagnosis);

// An evaluated candidate. `known` may be in brief.
struct StoredBrief {
  Known known;
  Promise promise;
  double at_s = 0;  // run time when it was stored
};

// Parses knobs as the store keeps them, {"TILE":"32","VEC":"4"}; false for anything else.
bool knobs_from_text(const std::string& text, KnobValues* knobs);

// An outcome of the named kind, without its texts; if correct, with a score as its only timing.
// False for an unknown kind.
bool brief_outcome(const std::string& name, double score_us, Outcome* outcome);

}  // namespace kernelpro
