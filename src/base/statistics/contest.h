// SPDX-License-Identifier: Apache-2.0
// Decides which measurements a comparison of two kernels takes and when to stop, without the clock
// and the processes. Pure values; one thread per object.
//
// A contest begins with a block in a completely randomised order (base/statistics/block.h): it
// shows a clear difference in the fewest turns that can, and gives a slow side few of them. The
// block ends as soon as the two sides overlap. Pairs in tossed order follow, until a sequential
// test (base/statistics/sequential.h) decides or the budget is spent. Block and test get half of
// `alpha` each, so a contest of equals declares a difference with a chance of at most `alpha`. If
// other work disturbed most pairs, pairs are compared by their undisturbed times instead
// (base/statistics/randomised.h), at the same counts and with the same share of `alpha`.
//
// Load that never ends lengthens every turn, and one side's more than the other's. It widens the
// interval: the lower end takes the incumbent's least possible times, the upper end the
// candidate's. The middle may only fall, so no candidate gains by waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/statistics/block.h"
#include "base/statistics/sequential.h"
#include "base/statistics/statistics.h"

namespace kernelpro {

struct ContestSettings {
  // Estimated time per turn. incumbent_s == 0: no incumbent, the candidate is timed alone.
  double incumbent_s = 0;
  double candidate_s = 0;
  int max_pairs = 40;
  int enough_pairs = 9;       // after `budget_s` is spent
  double budget_s = 1;        // times four while busy()
  double hard_budget_s = 12;  // after which three pairs suffice
  double min_effect = 0.005;  // ratios within 1 -+ this are ties
  double alpha = 0.02;
  // False: go on until the budget is spent even if the winner is clear, for a narrow interval.
  bool stop_early = true;
  std::uint64_t seed = 0;  // for the block's order
};

// What a turn took, and what it would have taken at least, had no other process run meanwhile.
struct TurnTime {
  TurnTime(double undisturbed)  // NOLINT(google-explicit-constructor)
      : time(undisturbed), least(undisturbed) {}
  TurnTime(double taken, double at_least) : time(taken), least(at_least) {}
  double time;
  double least;  // 0 < least <= time
};

class Contest {
 public:
  enum class Next { kIncumbent, kCandidate, kPair, kDone };

  explicit Contest(const ContestSettings& settings);
  // What to measure next. `spent_s`: seconds since the first turn.
  Next next(double spent_s) const;
  // One turn of the block, as `next` requested. REQUIRES: time > 0, always in the same unit.
  void add_turn(bool incumbent, TurnTime time);
  // Both turns of a pair. `incumbent` is ignored where there is none. `disturbed`: other work used
  // part of the machine meanwhile; must not depend on the times.
  void add_pair(TurnTime incumbent, TurnTime candidate, bool disturbed = false);
  // Drops the incumbent: from here on the candidate is timed alone.
  void drop_incumbent();

  // Incumbent's time over the candidate's. With too few measurements for the requested confidence,
  // the interval contains 1. REQUIRES: an incumbent.
  Interval ratio() const;
  // The candidate's times, in the order measured.
  const std::vector<double>& candidate_times() const { return candidate_.times; }
  // What they would have been at least, had no other process run.
  const std::vector<double>& least_candidate_times() const { return candidate_.least; }
  int pairs() const { return pairs_; }
  // Whether most pairs were disturbed.
  bool busy() const { return 2 * disturbed_ > pairs_; }

 private:
  bool paired() const { return settings_.incumbent_s > 0; }
  struct Side {
    std::vector<double> times, least;
    void add(TurnTime time);
    bool empty() const { return times.empty(); }
  };
  bool in_block() const { return block_next_ < order_.size(); }
  bool hopeless(double spent_s) const;
  void look_while_busy();
  template <class Ratio>
  static Interval widened(const Side& incumbent, const Side& candidate, const Ratio& ratio);
  Interval block_interval() const;
  Interval busy_ratio(double alpha) const;
  void end_block() { block_next_ = order_.size(); }

  ContestSettings settings_;
  std::vector<bool> order_;  // of the block; true: the incumbent
  std::size_t block_next_ = 0;
  bool only_block_ = false;  // pairs would take too long: report the block's interval
  bool clear_ = false;       // the block alone was decisive
  Side block_incumbent_, block_candidate_;
  std::optional<SequentialRatio> test_;
  int first_look_ = 0;
  Side candidate_;  // from all turns
  Side pair_incumbent_, pair_candidate_;
  int pairs_ = 0, disturbed_ = 0;
  int next_busy_look_ = 0;
  bool busy_decided_ = false;
  Interval busy_look_{1, 1, 1};  // at the last look, while busy
};

}  // namespace kernelpro
