// SPDX-License-Identifier: Apache-2.0
// Every constant of every search with its source, and the named presets. "Own" means chosen by
// hand, not measured.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct SearchParameters {
  // --- first candidates of mcts, beam, greedy and random: written from the root, whatever their
  // results. 0: none. KernelPro (arXiv:2606.26453): 15 = 5 temperatures x 3 rounds.
  int seeds = 0;
  // Seeds use these in turn; empty: the models' own settings. KernelPro does not say which five.
  std::vector<double> temperatures;
  // Candidates per turn; 0: the proposer decides. KernelPro: 2.
  int candidates = 0;
  // Turns after the seeds that the preset is designed for; 0: whatever the budget allows.
  // KernelPro: 30.
  int iterations = 0;

  // A candidate whose diagnosis promises no further gain waits until nothing else is left. Its line
  // ends for good only at this share of the speed of light, or if that share is unknown. The value
  // is the share at which runs end by default (run/run.h). Own.
  double ceiling = 0.95;

  // --- mcts
  // UCT: weight of sqrt(log(parent's visits) / visits) against a value in [0,1]. Below sqrt(2)
  // because budgets are tens of evaluations, not millions. Own.
  double exploration = 0.1;
  // A node with v visits and own reward r may have widening * (1 + quality * r) * v^exponent
  // children before the search goes deeper (progressive widening: Coulom 2007; Chaslot et al.
  // 2008). Own.
  double widening = 0.5;
  double exponent = 0.4;
  double quality = 1.0;
  // A correct node slower than the fastest by this factor is put off: expanded when nothing else is
  // left. Rewards distinguish times up to this factor. Own.
  double prune_factor = 8.0;
  // A node is also put off after this many tries in a row without anything faster than itself; the
  // fastest node is exempt. 0: never. Own.
  int patience = 5;
  // The scale of rewards spans at least this factor, so that noise does not look like a difference.
  // Own.
  double least_scale = 1.1;
  // Weight of the gain that a node's diagnosis promises, as a share of the reward scale: a prior
  // divided by the tries made. 0: diagnoses are ignored. Own.
  double diagnosis = 0.3;
  // Share of a promise's logarithm that is counted on when a node is compared with the fastest. Of
  // what the parents of 82 and of 184 written steps promised, 0.13 and 0.20 was gained
  // (results/search.md).
  double kept = 0.2;

  // The last share of a run's evaluations, at least one, that builds on the best alone. Own.
  double endgame = 0.1;

  // --- branches. Stanford CRFM (2025): rounds of ideas, each implemented several times; the
  // fastest and a bank of good kernels seed the next of 5 rounds. Their counts are not published.
  int rounds = 5;
  int ideas = 4;            // per round
  int implementations = 3;  // per idea
  int bank = 3;             // kernels that seed a round, including the fastest

  // --- beam: the `beam_width` fastest, each tried `beam_tries` times. KernelAgent (Meta) keeps a
  // beam; width and tries are own.
  int beam_width = 4;
  int beam_tries = 4;

  // --- best-of-n: tries from the root; 0: as many as the budget allows.
  int tries = 0;
};

// Contradictory or meaningless settings are kBadInput.
Result<void> check(const SearchParameters& parameters);

// A named setting.
struct Preset {
  std::string_view name;
  std::string_view summary;
  std::string_view search;  // the search that it configures; "" = any, by default the first
  SearchParameters (*parameters)();
  int evaluations;  // the budget it is made for, start included; 0: any
};
std::span<const Preset> presets();
std::string preset_names();  // "default|paper|..."
// Fails with kBadInput and lists the known names.
Result<const Preset*> find_preset(std::string_view name);

}  // namespace kernelpro
