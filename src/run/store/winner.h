// SPDX-License-Identifier: Apache-2.0
// Which candidate won a run, and which it began from: the single definitions for reports, suites,
// seeds and diagnoses. Pure.
#pragma once

#include <functional>
#include <vector>

#include "run/store/records.h"

namespace kernelpro {

struct Winner {
  const StoredCandidate* candidate = nullptr;  // null: no correct candidate is eligible
  bool confirmed = false;                      // in fresh processes
};
// The confirmed winner if it is eligible; else the fastest eligible correct candidate, by
// comparable times (run/store/comparable.h), a launch plan before any host form. `confirmation` may
// be null, `eligible` empty.
Winner winner_of(const std::vector<StoredCandidate>& candidates,
                 const StoredConfirmation* confirmation,
                 const std::function<bool(const StoredCandidate&)>& eligible = {});

// What share of its ceiling the winner reaches by its confirmation. The diagnosis, with the floor
// of one case, is of the time that the search measured; scores of several timed cases are means.
double confirmed_fraction(const Known& winner, const Evaluation& confirmed);

// What the run began from: its first evaluated candidate without a parent. Null: none yet.
const StoredCandidate* start_of(const std::vector<StoredCandidate>& candidates);

// Evaluated candidates in the order of evaluation.
std::vector<const StoredCandidate*> in_order(const std::vector<StoredCandidate>& candidates);

}  // namespace kernelpro
