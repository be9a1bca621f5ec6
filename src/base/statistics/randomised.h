// SPDX-License-Identifier: Apache-2.0
// The ratio of two times on a machine that others use too. Interference only ever adds time, and
// adds nothing to some turns, so the two sides are compared by the geometric mean of the shortest
// third of their times, which a busy machine moves least. The interval comes from the tossed order
// within each pair alone: if the candidate takes 1/r of the incumbent's time, swapping the times of
// any pair (the incumbent's over r) was as likely, and a ratio as far out as the one observed is as
// rare among all such swaps as it should be (Fisher's randomisation test, inverted). No assumption
// about the noise is made. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/statistics/statistics.h"

namespace kernelpro {

// Incumbent's time over the candidate's, with confidence 1 - alpha. `seed`: of the swaps that are
// tried (2,000 for each bound). Fewer than 7 pairs bound nothing: the range of the ratios is given.
// REQUIRES: same size, not empty, all > 0.
Interval randomised_ratio(const std::vector<double>& incumbent,
                          const std::vector<double>& candidate, double alpha, std::uint64_t seed);

// What a call takes when nothing comes between: the lower quartile, from the shortest time to the
// median.
Interval undisturbed_time(const std::vector<double>& times);

}  // namespace kernelpro
