// SPDX-License-Identifier: Apache-2.0
// Is one thing faster than another, decided as early as is honest: pairs of times come in, looks
// are taken at fixed counts, and the whole sequence of looks errs with at most `alpha`. Pure
// values; one thread per object.
//
// At look k the interval is that of the median of the ratios by order statistics at confidence
// 1 - alpha_k (exact for independent pairs of any distribution; Conover, Practical Nonparametric
// Statistics, 3.2), with the alpha_k summing to at most alpha, so that stopping at any look is
// valid (union bound). Order statistics come in steps: what a look leaves of its share goes to the
// later ones. Neighbouring pairs of real timings resemble each other; where the signs about the
// median show it (lag-one correlation r, less half of its standard error), ranks move outward by
// sqrt((1 + r) / (1 - r)), the factor by which such pairs tell less than independent ones.
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
  // Changes only at looks and, once decided, never again. kUndecided at max_pairs is final too.
  State state() const { return state_; }
  bool done() const;
  int pairs() const { return static_cast<int>(ratios_.size()); }
  // Pairs that are still to come before the next look; 0 when done.
  int until_look() const;
  // The interval of the last look; before the first, and where a look has too few pairs for its
  // confidence, the range of the pairs, which decides nothing. {1, 1, 1} without pairs.
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
