// SPDX-License-Identifier: Apache-2.0
// Monte Carlo tree search over kernels. A node is an evaluated candidate; to expand it is to ask
// the proposer for one change of it. There is no rollout: the measured time is the reward.
//
// What differs from the textbook:
// - Rewards are logarithms of speed-ups on a scale from what is put off (below) to the fastest, or,
//   by a share, to the speed of light. Times beyond the scale count as its end.
// - A wall of correctness: a candidate that fails is a leaf for good. It counts as a visit of
//   reward 0, so that lines of change that keep failing lose their turn.
// - Progressive widening with asymmetric branching: a node may have more children the more visits
//   it has had, the better it is itself and the more its diagnosis promises.
// - A node's value mixes the mean with the best below it: a search for an optimum, not for an
//   average. What its diagnosis promises is added as a prior that fades with the tries made of it.
// - Dead ends are put off, with a reason: far slower than the fastest, or several tries in a row
//   that brought nothing. They are expanded when nothing else is left, and after them those at
//   the ceiling of whom a little may be left (SearchParameters::ceiling).
// - Expansions in flight count as visits of reward 0 (virtual loss).
// Deterministic: no random numbers; ties go to the older node.
//
// A turn costs the children along one path: counts of what is open are kept up the tree, and the
// scale is a function of the fastest, the slowest and the speed of light, so that no reward is ever
// stored. Depth matters: a tree that is one long chain costs its length a turn.
#pragma once

#include <cstdint>
#include <memory>

#include "search/parameters.h"
#include "search/search.h"

namespace kernelpro {

// Its constants are in parameters.h. The seed is not used.
std::unique_ptr<Search> make_mcts(const SearchParameters& parameters = {}, std::uint64_t seed = 0);

}  // namespace kernelpro
