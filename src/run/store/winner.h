// SPDX-License-Identifier: Apache-2.0
// Which candidate won a stored run, and which it began from: the single definitions for reports,
// suites, seeds and diagnoses. Pure.
#pragma once

#include <functional>
#include <vector>

#include "run/store/ranking.h"
#include "run/store/records.h"

namespace kernelpro {

// The evaluated candidates of a stored run, as the loop ranked them. Refers to the candidates.
struct RankedRun {
  // `header`: for the run's objective.
  RankedRun(const RunHeader& header, const std::vector<StoredCandidate>& candidates);

  std::vector<const StoredCandidate*> order;  // of evaluation
  CandidateRanking ranking;                   // by position in `order`

  // The run's first candidate, the baseline and the best before any confirmation; null: none yet.
  const StoredCandidate* start() const { return order.empty() ? nullptr : order.front(); }
  const StoredCandidate* baseline() const { return at(ranking.baseline()); }
  const StoredCandidate* best() const { return at(ranking.best()); }

 private:
  const StoredCandidate* at(std::size_t i) const {
    return i == CandidateRanking::kNone ? nullptr : order[i];
  }
};

struct Winner {
  const StoredCandidate* candidate = nullptr;  // null: no correct candidate is eligible
  bool confirmed = false;                      // in fresh processes
};
// The confirmed winner; else the best. Where that one is not eligible: the fastest correct
// candidate that is, by comparable times, a launch plan before any host form. `confirmation` may be
// null, `eligible` empty.
Winner winner_of(const RankedRun& run, const StoredConfirmation* confirmation,
                 const std::function<bool(const StoredCandidate&)>& eligible = {});

// What share of its ceiling the winner reaches by its confirmation. The diagnosis, with the floor
// of one case, is of the time that the search measured; scores of several timed cases are means.
double confirmed_fraction(const Known& winner, const Evaluation& confirmed);

// Fills in Known::comparable of the correct candidates.
void make_comparable(const RunHeader& header, std::vector<StoredCandidate>* candidates);

// Evaluated candidates in the order of evaluation.
std::vector<const StoredCandidate*> in_order(const std::vector<StoredCandidate>& candidates);

}  // namespace kernelpro
