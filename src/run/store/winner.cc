// SPDX-License-Identifier: Apache-2.0
#include "run/store/winner.h"

#include <algorithm>

#include "run/store/comparable.h"

namespace kernelpro {

std::vector<const StoredCandidate*> in_order(const std::vector<StoredCandidate>& candidates) {
  std::vector<const StoredCandidate*> all;
  for (const StoredCandidate& candidate : candidates) {
    if (candidate.evaluated) all.push_back(&candidate);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->order < b->order; });
  return all;
}

const StoredCandidate* start_of(const std::vector<StoredCandidate>& candidates) {
  const auto start = std::find_if(candidates.begin(), candidates.end(), [](const auto& each) {
    return each.evaluated && each.known.candidate.origin.parent == 0;
  });
  return start == candidates.end() ? nullptr : &*start;
}

Winner winner_of(const std::vector<StoredCandidate>& candidates,
                 const StoredConfirmation* confirmation,
                 const std::function<bool(const StoredCandidate&)>& eligible) {
  Comparables times;
  Winner winner;
  double least_us = 0;
  for (const StoredCandidate* candidate : in_order(candidates)) {
    const Known& known = candidate->known;
    if (known.evaluation.correct() == nullptr) continue;
    const Comparable time = times.add(content_hash(known), known.evaluation);
    if (eligible && !eligible(*candidate)) continue;
    if (confirmation != nullptr && confirmation->best == known.id) return {candidate, true};
    if (time.us <= 0) continue;
    if (winner.candidate != nullptr) {
      const Correct& mine = *known.evaluation.correct();
      const Correct& best = *winner.candidate->known.evaluation.correct();
      if (!beats(mine, time.us, best, least_us)) continue;
    }
    winner.candidate = candidate;
    least_us = time.us;
  }
  return winner;
}

double confirmed_fraction(const Known& winner, const Evaluation& confirmed) {
  const double us = score_us(confirmed), then = score_us(winner.evaluation);
  const double fraction = winner.diagnosis.fraction_of_ceiling;
  return us > 0 && then > 0 ? fraction * then / us : fraction;
}

}  // namespace kernelpro
