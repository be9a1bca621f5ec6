// SPDX-License-Identifier: Apache-2.0
// What a run needs of each candidate to go on: columns of the store, so that a resume reads no JSON
// but for the few candidates that somebody asks about. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "core/proposal.h"

namespace kernelpro {

// What a diagnosis says of what is left, as far as a search listens (search/search.h).
struct Promise {
  bool stop = false;  // nothing is left to win
  double likely = 0;  // the best speed-up among findings that prescribe something; 0: none does
  double upper = 0;
};
Promise promise_of(const Diagnosis& diagnosis);

// An evaluated candidate. `known` may be in brief.
struct StoredBrief {
  Known known;
  Promise promise;
};

// {"TILE":"32","VEC":"4"} as the store keeps knobs; false when it is anything else.
bool knobs_from_text(const std::string& text, KnobValues* knobs);

// The kind of outcome by name, without its texts; correct: with a score as its only timing. False
// when there is no such kind.
bool brief_outcome(const std::string& name, double score_us, Outcome* outcome);

}  // namespace kernelpro
