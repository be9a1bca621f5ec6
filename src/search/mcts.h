// SPDX-License-Identifier: Apache-2.0
// Monte Carlo tree search over kernels. A node is an evaluated candidate; expanding it means
// requesting one change of it from the proposer. There is no rollout: the measured time is the
// reward.
//
// Differences from the textbook:
// - Rewards are log speed-ups on a scale from the slowest candidate that is not put off to the
//   fastest one. Times outside the scale are clamped to its ends.
// - A wall of correctness: a failed candidate is a leaf for good. It counts as a visit with reward
//   0, so that lines of change that keep failing lose their turn.
// - Progressive widening with asymmetric branching: a node may have more children the more visits
//   it has had, the better it is itself and the more its diagnosis promises beyond what its
//   descendants have brought.
// - A node's value is the best at or below it, not the mean, because the goal is an optimum. The
//   gain that its diagnosis promises is added as a prior that fades with the tries made.
// - Dead ends are put off, with a reason: far slower than the fastest, or several tries in a row
//   without progress. They are expanded when nothing else is left; after them, nodes at the ceiling
//   that may have a little left (SearchParameters::ceiling).
// - A candidate whose diagnosis will hardly take it past the fastest, by what is usually kept of a
//   promise (SearchParameters::kept), comes after all these, unless it is at the ceiling itself: a
//   request that builds on it is mostly answered from the fastest, or in vain. Only where diagnoses
//   promise anything: without them, times alone say little.
// - Expansions in flight count as visits with reward 0 (virtual loss).
// Deterministic: no random numbers; ties go to the older node.
//
// The cost of a turn is the number of children along one path: counts of open nodes are maintained
// up the tree, and the scale is a function of the fastest and the slowest, so that no reward is
// ever stored. Depth matters: on a tree that is one long chain, a turn costs the chain's length.
#pragma once

#include <cstdint>
#include <memory>

#include "search/parameters.h"
#include "search/search.h"

namespace kernelpro {

// Constants are in parameters.h. The seed is not used.
std::unique_ptr<Search> make_mcts(const SearchParameters& parameters = {}, std::uint64_t seed = 0);

}  // namespace kernelpro
