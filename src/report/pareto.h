// SPDX-License-Identifier: Apache-2.0
// Time against energy, for runs that measured both.
#pragma once

#include <string>
#include <vector>

#include "report/view.h"

namespace kernelpro {

// Energy of a correct candidate; null when it was not measured.
const Energy* energy_of(const StoredCandidate& candidate);

// The Pareto front: correct candidates with a measured energy that no other one beats in both time
// and energy, fastest first; of equal ones the oldest.
std::vector<const StoredCandidate*> pareto_front(const RunView& view);

// "energy of the winner, compared with the start: ..." and "Pareto front of time and energy:" with
// a line each; "" when no energy was measured.
std::string energy_lines(const RunView& view);

}  // namespace kernelpro
