// SPDX-License-Identifier: Apache-2.0
// A model in the loop, made up: what becomes of a candidate that a writer makes of another one. Its
// parameters are fitted to recorded runs (bench/synthetic/fit.py); what no run shows is an own
// choice and said to be.
//
// A candidate belongs to a design, and its time never falls below what its design allows (its
// floor): a plateau. Each candidate is either a new design or a variation of its parent's; designs
// that allow much may begin slower than others that allow nothing more, which is what deceives. A
// new design keeps some of its parent's distance to the speed of light, and is seldom a jump. A
// diagnosis is silent, or tells a noisy share of what is left. Ideas that fail are a property of
// the design: whoever does not remember them tries them again.
//
// What the n-th child of a candidate comes to depends on the seed and the path to it alone, so that
// all searches are compared on the same landscapes. Distances are ln(time / speed of light).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "search/search.h"

namespace kernelpro::testing {

struct LandscapeParameters {
  std::vector<double> starts;         // distances of the tasks' starts
  std::vector<double> failure_rates;  // of the same tasks
  double new_design = 0;              // share of working candidates; the others are variations
  // ln of a design's floor: its mean, spread within a task, and spread of the tasks' means.
  double distance_mean = 0, distance_sd = 0, task_sd = 0;
  // Of what the parent's ln distance is above its mean, the share that a new design keeps.
  double inheritance = 0, parent_mean = 0;
  double jump = 0, jump_size = 0;     // share of new designs, and what it takes off ln of the floor
  double immature = 0;                // mean distance of a design's first candidate above its floor
  double step_mean = 0, step_sd = 0;  // of a variation, towards the light
  double silent = 0;                  // share of diagnoses that promise nothing
  double told_mean = 1, told_sd = 0;  // ln promised over what is left
  bool knows_design = false;          // what is left: to the design's floor, else to the light
  int ideas = 8;                      // of a design; some of them fail whenever they are tried
};

// The text of bench/synthetic/landscape.json. Fails with kBadInput.
Result<LandscapeParameters> landscape_from_json(const std::string& text);

class Synthetic {
 public:
  // `remembers`: the writer tries no idea again that failed for the same design.
  Synthetic(const LandscapeParameters& parameters, std::uint64_t seed, bool remembers);
  NodeResult root() const { return result_of(nodes_[0]); }  // id 1
  // Makes the next child of `parent`; its id is one more than that of the child before.
  NodeResult child(std::int64_t parent);
  double start_distance() const { return nodes_[0].distance; }
  int repeated_failures() const { return repeated_; }

 private:
  struct Node {
    std::uint64_t path = 0;
    int design = 0;
    int children = 0;
    bool correct = true;
    double distance = 0;
  };
  struct Design {
    std::uint64_t path = 0;
    double floor = 0;
    std::uint64_t failed = 0;  // ideas that were tried in vain, a bit each
  };
  NodeResult result_of(const Node& node) const;
  bool fails(const Node& parent, std::uint64_t path);
  double new_floor(const Node& parent, std::uint64_t path) const;

  const LandscapeParameters& p_;
  bool remembers_;
  double failure_ = 0;
  double task_ = 0;
  int repeated_ = 0;
  std::vector<Node> nodes_;
  std::vector<Design> designs_;
};

}  // namespace kernelpro::testing
