// SPDX-License-Identifier: Apache-2.0
// Sequential test of which of two things is faster, which stops as early as is valid. Pairs of
// times come in, looks are taken at fixed counts, and the error over all looks is at most `alpha`.
// Pure values; one thread per object.
//
// Look k uses the order-statistics interval of the median ratio at confidence 1 - alpha_k (exact
// for independent pairs of any distribution; Conover, Practical Nonparametric Statistics, 3.2). The
// alpha_k sum to at most alpha, so stopping at any look is valid (union bound). Order statistics
// come in steps: whatever a look leaves of its share goes to later looks. Neighbouring pairs of
// real timings are correlated; where the signs about the median show it (lag-one correlation r,
// less half its standard error), ranks move outward by sqrt((1 + r) / (1 - r)), the factor by which
// such pairs carry less information than independent ones.
#pragma once

#include <vector>

#include "base/statistics/statistics.h"

namespace kernelpro {

struct SequentialSettings {
  double alpha = 0.02;        // chance that a pair of equals is ever declared different
  double min_effect = 0.005;  // ratios within 1 -+ this are ties
  int first_look = 12;        // pairs; looks follow at counts that grow by `growth`
  double growth = 1.5;
  int max_pairs = 400;
};

class SequentialRatio {
 public:
  enum class State { kUndecided, kFaster, kSlower, kTie };

  explicit SequentialRatio(const SequentialSettings& settings);
  // `ratio`: incumbent's time over the candidate's, > 0; above 1 the candidate is faster.
  void add(double ratio);
  // Changes only at looks and, once decided, never again. kUndecided at max_pairs is also final.
  State state() const { return state_; }
  bool done() const;
  int pairs() const { return static_cast<int>(ratios_.size()); }
  // Pairs until the next look; 0 when done.
  int until_look() const;
  // The interval of the last look. Before the first, and where a look has too few pairs for its
  // confidence, the range of the ratios, which decides nothing. {1, 1, 1} without pairs.
  Interval interval() const;

 private:
  struct Look {
    int pairs = 0;
    int rank = 0;  // the rank-th smallest and largest ratio bound the interval; 0: too few pairs
  };
  void plan_looks();
  void look(const Look& at);

  SequentialSettings settings_;
  std::vector<double> ratios_;
  std::vector<Look> looks_;
  std::size_t next_look_ = 0;
  State state_ = State::kUndecided;
  Interval interval_;
};

}  // namespace kernelpro
