// SPDX-License-Identifier: Apache-2.0
// Two treatments in a completely randomised order: the fewest measurements that can show a clear
// difference, whatever the noise. Pure values.
//
// n turns of the incumbent and m of the candidate run in a uniformly random order. If both take
// equally long, then whatever the machine does at each turn, every assignment of the n + m times to
// the two sides is equally likely, so all times of one side lie above all of the other with
// probability 2 / C(n + m, n): a permutation test (Fisher 1935) whose only source of chance is the
// order. It stays valid under drift, bursts of load and correlated noise. A slow side needs few
// turns if the other gets many: 2 against 19 has the error rate of 5 against 5.
#pragma once

#include <cstdint>
#include <vector>

#include "base/statistics/statistics.h"

namespace kernelpro {

struct BlockSize {
  int incumbent = 0;
  int candidate = 0;
};

// Chance that a block separates equals: 2 / C(n + m, n). REQUIRES: both >= 1.
double separation_chance(BlockSize size);

// The quickest block that separates equals with a chance of at most `alpha`, with at most `most`
// turns a side. The times are per turn. Falls back to the equal block when none fits.
BlockSize cheapest_block(double incumbent_s, double candidate_s, double alpha, int most = 200);

// A uniformly random order; true: the incumbent's turn.
std::vector<bool> block_order(BlockSize size, std::uint64_t seed);

// Whether all times of one side lie above all of the other. REQUIRES: neither is empty.
bool separated(const std::vector<double>& incumbent, const std::vector<double>& candidate);

// Incumbent's time over the candidate's: the ratio of medians, bounded by the smallest and largest
// ratio of two turns. For a whole block this is a confidence interval at level
// 1 - separation_chance (Moses 1952, the outermost one). REQUIRES: neither is empty, all > 0.
Interval block_ratio(const std::vector<double>& incumbent, const std::vector<double>& candidate);

}  // namespace kernelpro
