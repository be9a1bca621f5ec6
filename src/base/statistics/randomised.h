// SPDX-License-Identifier: Apache-2.0
// The ratio of two times on a shared machine. Interference only ever adds time, and adds none to
// some turns, so the two sides are compared by the geometric mean of the shortest third of their
// times, which a busy machine moves least. The interval comes only from the tossed order within
// each pair: if the candidate takes 1/r of the incumbent's time, swapping the times of any pair
// (the incumbent's over r) was equally likely, and a ratio as far out as the observed one is as
// rare among all such swaps as it should be (Fisher's randomisation test, inverted). It assumes
// nothing about the noise. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/statistics/statistics.h"

namespace kernelpro {

enum class Ends { kNone, kLow, kHigh, kBoth };

// Incumbent's time over the candidate's, with confidence 1 - alpha. `seed`: for the swaps tried
// (2,000 per bound). Fewer than 7 pairs give no bound: returns the range of the ratios. `wanted`:
// the others are left at the middle, which saves their swaps. REQUIRES: same size, not empty, all
// > 0.
Interval randomised_ratio(const std::vector<double>& incumbent,
                          const std::vector<double>& candidate, double alpha, std::uint64_t seed,
                          Ends wanted = Ends::kBoth);

// Time of a call without interference: the lower quartile, from the shortest time to the median.
Interval undisturbed_time(const std::vector<double>& times);

}  // namespace kernelpro
