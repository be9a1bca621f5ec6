// SPDX-License-Identifier: Apache-2.0
// Every constant of every search, with its source, and the settings that have a name. "Own" means
// chosen here, by hand, before any of the figures in results/search.md; "tuned", chosen on other
// seeds of the landscapes there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct SearchParameters {
  // --- the first candidates, of mcts, beam, greedy and random: written from the root, whatever
  // becomes of them. 0: none. KernelPro (arXiv:2606.26453): 15 = 5 temperatures x 3 rounds.
  int seeds = 0;
  // Seeds take these in turn; empty: models are asked as they are set. KernelPro does not say
  // which five.
  std::vector<double> temperatures;
  // Candidates of one turn; 0: as many as the proposer sees fit. KernelPro: 2.
  int candidates = 0;
  // Turns after the seeds for which the setting is meant; 0: whatever the budget allows.
  // KernelPro: 30.
  int iterations = 0;

  // A candidate whose diagnosis says that nothing is left to win waits until nothing else is left.
  // Its line ends for good only at this share of the speed of light, or where that is not known:
  // the share at which runs end by default (run/run.h). Own.
  double ceiling = 0.95;

  // --- mcts
  // UCT: weight of sqrt(log(parent's visits) / visits) against a value in [0,1]. Below sqrt(2)
  // because budgets are tens of evaluations, not millions. Tuned.
  double exploration = 0.1;
  // Share of the best descendant in a node's value; the rest is the mean. Tuned.
  double best_share = 1;
  // A node with v visits and own reward r may have widening * (1 + quality * r) * v^exponent
  // children before the search goes deeper instead (progressive widening: Coulom 2007; Chaslot et
  // al. 2008). Own.
  double widening = 0.5;
  double exponent = 0.4;
  double quality = 1.0;
  // A correct node slower than the fastest by this factor is put off: expanded when nothing else
  // is left. Rewards tell times apart up to it. Own.
  double prune_factor = 8.0;
  // So is one whose tries in a row brought nothing faster than itself, but for the fastest. 0:
  // never. Own.
  int patience = 5;
  // The scale of rewards spans at least this factor, so that noise is not taken for a difference.
  // Own.
  double least_scale = 1.1;
  // How much of the way from the fastest to the speed of light (where it is known) stands above
  // the fastest in the scale of rewards: far from light, differences weigh less against
  // exploration. Own.
  double light_share = 0.0;
  // Weight of the gain that a node's diagnosis promises, as a share of the scale of rewards: a
  // prior that is divided by the tries made of it. 0: no diagnosis is used. Own.
  double diagnosis = 0.3;

  // --- branches. Stanford CRFM (2025): rounds of ideas, each implemented several times; the
  // fastest and a bank of good kernels seed the next of 5 rounds. Their counts are not published.
  int rounds = 5;
  int ideas = 4;            // a round
  int implementations = 3;  // of an idea
  int bank = 3;             // kernels that seed a round, the fastest among them

  // --- beam: the `beam_width` fastest, each tried `beam_tries` times. KernelAgent (Meta) keeps a
  // beam; width and tries are own.
  int beam_width = 4;
  int beam_tries = 4;

  // --- best-of-n: tries from the root; 0: as many as the budget allows.
  int tries = 0;
};

// Settings that contradict each other or mean nothing are kBadInput.
Result<void> check(const SearchParameters& parameters);

// A setting with a name.
struct Preset {
  std::string_view name;
  std::string_view summary;
  std::string_view search;  // what it is a setting of; "" = any search, by default mcts
  SearchParameters (*parameters)();
  int evaluations;  // that it is made for, with the start; 0: any number
};
std::span<const Preset> presets();
// Fails with kBadInput and the names that there are.
Result<const Preset*> find_preset(std::string_view name);

}  // namespace kernelpro
