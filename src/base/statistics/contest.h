// SPDX-License-Identifier: Apache-2.0
// Which measurements a comparison of two kernels takes, and when it has seen enough: the decisions
// of a contest, without its clock and its processes. Pure values; one thread per object.
//
// A contest begins with a block in a completely randomised order (base/statistics/block.h): a clear
// difference shows there, after the fewest turns that can show it, and a side that is slow gets few
// of them. The block is left as soon as the two sides overlap. Then pairs follow, whose order is
// tossed, until a sequential test (base/statistics/sequential.h) decides or the budget is spent.
// Each of the two has half of `alpha`, so a contest of equals declares a difference with a chance
// of at most `alpha`. Where most pairs were disturbed by other work, pairs are compared by their
// undisturbed times instead (base/statistics/randomised.h), at the same counts and with the same
// share of `alpha`.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/statistics/block.h"
#include "base/statistics/sequential.h"
#include "base/statistics/statistics.h"

namespace kernelpro {

struct ContestSettings {
  // About how long a turn takes. incumbent_s == 0: there is none, the candidate is timed alone.
  double incumbent_s = 0;
  double candidate_s = 0;
  int max_pairs = 40;
  int enough_pairs = 9;       // once `budget_s` is spent
  double budget_s = 1;        // four times that while busy()
  double hard_budget_s = 12;  // after which three pairs will do
  double min_effect = 0.005;  // ratios within 1 -+ this are ties
  double alpha = 0.02;
  // False: keep measuring until the budget is spent although the winner is clear, for a narrow
  // interval.
  bool stop_early = true;
  std::uint64_t seed = 0;  // of the block's order
};

class Contest {
 public:
  enum class Next { kIncumbent, kCandidate, kPair, kDone };

  explicit Contest(const ContestSettings& settings);
  // What to measure next. `spent_s`: since the first turn.
  Next next(double spent_s) const;
  // One turn of the block, as `next` asked. REQUIRES: time > 0, in any unit, the same everywhere.
  void add_turn(bool incumbent, double time);
  // Both turns of a pair. `incumbent` is ignored where there is none. `disturbed`: other work took
  // part of the machine meanwhile; must not depend on the times.
  void add_pair(double incumbent, double candidate, bool disturbed = false);
  // The incumbent is gone: from here on the candidate is timed alone.
  void drop_incumbent();

  // Incumbent's time over the candidate's. Where too little was measured to say anything with the
  // confidence asked for, the interval holds 1. REQUIRES: an incumbent.
  Interval ratio() const;
  // Of the candidate, in the order measured.
  const std::vector<double>& candidate_times() const { return candidate_; }
  int pairs() const { return pairs_; }
  // Most pairs were disturbed.
  bool busy() const { return 2 * disturbed_ > pairs_; }

 private:
  bool paired() const { return settings_.incumbent_s > 0; }
  bool in_block() const { return block_next_ < order_.size(); }
  bool hopeless(double spent_s) const;
  void look_while_busy();
  Interval busy_ratio(double alpha) const;
  void end_block() { block_next_ = order_.size(); }

  ContestSettings settings_;
  std::vector<bool> order_;  // of the block; true: the incumbent
  std::size_t block_next_ = 0;
  bool only_block_ = false;  // pairs would take too long: the block's interval is the answer
  bool clear_ = false;       // the block alone decided
  std::vector<double> block_incumbent_, block_candidate_;
  std::optional<SequentialRatio> test_;
  int first_look_ = 0;
  std::vector<double> candidate_;  // of all turns
  std::vector<double> pair_incumbent_, pair_candidate_;
  int pairs_ = 0, disturbed_ = 0;
  int next_busy_look_ = 0;
  bool busy_decided_ = false;
  Interval busy_look_{1, 1, 1};  // of the last look, while busy
};

}  // namespace kernelpro
