// SPDX-License-Identifier: Apache-2.0
// Monte Carlo tree search over kernels. A node is an evaluated candidate; to expand it is to ask
// the proposer for one change of it. There is no rollout: the measured time is the reward.
//
// What differs from the textbook:
// - Rewards are logarithms of speed-ups, rescaled to [0,1] between the slowest and the fastest
// seen.
// - A wall of correctness: a candidate that fails is a leaf for good. It counts as a visit of
//   reward 0, so that lines of change that keep failing lose their turn.
// - Progressive widening with asymmetric branching: a node may have more children the more visits
// it
//   has had and the better it is itself.
// - A node's value mixes the mean with the best below it: a search for an optimum, not for an
//   average.
// - Expansions in flight count as visits of reward 0 (virtual loss).
// Deterministic: no random numbers; ties go to the older node.
#pragma once

#include <memory>

#include "search/search.h"

namespace kernelpro {

struct MctsParameters {
  // UCT: weight of sqrt(log(parent's visits) / visits) against a value in [0,1]. Below sqrt(2)
  // because budgets are tens of evaluations, not millions.
  double exploration = 0.2;
  // Share of the best descendant in a node's value; the rest is the mean.
  double best_share = 0.8;
  // A node with v visits and own reward r may have widening * (1 + quality * r) * v^exponent
  // children before the search goes deeper instead.
  double widening = 0.5;
  double exponent = 0.4;
  double quality = 1.0;
  // A correct node slower than the fastest by this factor is only expanded when all others are
  // exhausted.
  double prune_factor = 8.0;
};

std::unique_ptr<Search> make_mcts(const MctsParameters& parameters = {});

}  // namespace kernelpro
