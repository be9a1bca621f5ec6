// SPDX-License-Identifier: Apache-2.0
// Scores and statistics of a suite: pure functions of its tasks' results.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics/paired.h"

namespace kernelpro {

// One task under one arm against one yardstick.
struct Score {
  std::string task;
  bool correct = false;  // a candidate of the search, other than the start, was correct
  // Time of the yardstick over time of the fastest such candidate; 0: it was not measured.
  double speedup = 0;
  double fraction = 0;  // of the speed of light; 0: not known
};

// As in KernelBench's score.py: fast_p is the fraction of all tasks whose result is correct and
// more than p times as fast; a task without a correct result fails at every p.
inline constexpr double kFastThresholds[] = {0, 0.5, 0.8, 1, 1.5, 2, 4};

struct Measures {
  int tasks = 0;         // scored tasks
  int correct = 0;       // of these
  int not_compared = 0;  // correct, but the yardstick was not measured: not scored
  double success = 0;    // correct / tasks
  std::vector<std::pair<double, double>> fast;  // (p, fast_p)
  double geomean_correct = 0;  // of the speedups of correct tasks; 0: there are none
  double geomean_all = 0;      // of all tasks, with 1x for failures
  double median_correct = 0;
  double fraction = 0;  // geometric mean over the correct tasks where it is known; 0: nowhere
};
Measures measure_scores(const std::vector<Score>& scores);

// Arm b against arm a, over the tasks that are scored in both: logarithms of speedups, with 1x for
// failures.
struct ArmComparison {
  std::string a, b;
  int pairs = 0;
  double ratio = 1;            // geometric mean of b's speedup over a's
  double low = 1, high = 1;    // 95 % percentile bootstrap over tasks
  SignedRank test;             // of the differences of the logarithms
  double adjusted_p = 1;       // Holm, over all comparisons of the call
  int only_a = 0, only_b = 0;  // tasks solved by one arm only
};
// Every pair of arms, in order. `seed` is the bootstrap's.
std::vector<ArmComparison> compare_arms(
    const std::vector<std::pair<std::string, std::vector<Score>>>& arms, std::uint64_t seed);

}  // namespace kernelpro
