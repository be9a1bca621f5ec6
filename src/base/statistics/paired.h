// SPDX-License-Identifier: Apache-2.0
// Two treatments of the same subjects: is there a difference, how large, and how certain? Pure
// functions; paired_test.cc compares them with SciPy and statsmodels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/statistics/statistics.h"

namespace kernelpro {

// Wilcoxon's signed-rank test of differences, two-sided (Wilcoxon 1945). Like scipy.stats.wilcoxon
// with zero_method "wilcox", it drops zero differences and gives ties their mean rank.
struct SignedRank {
  int pairs = 0;     // with a nonzero difference
  double plus = 0;   // rank sum of positive differences
  double minus = 0;  // rank sum of negative differences
  double p = 1;      // 1 when nothing differs
  // True: from the distribution of all sign patterns. False: normal approximation, corrected for
  // ties and continuity. Exact for at most 25 differences without ties or zeros.
  bool exact = true;
  // Matched-pairs rank-biserial correlation (Kerby 2014): (plus - minus) / (plus + minus), from -1
  // to 1; 0 when nothing differs.
  double effect = 0;
};
SignedRank signed_rank(const std::vector<double>& differences);

// Percentile bootstrap of the mean (Efron 1979): the (1 - level) / 2 and (1 + level) / 2 quantiles
// of `resamples` means, each of as many values drawn with replacement; `mid` is the plain mean. The
// same seed gives the same interval on every machine. REQUIRES: not empty.
Interval bootstrap_mean(const std::vector<double>& values, std::uint64_t seed = 1,
                        int resamples = 10000, double level = 0.95);

// Holm's step-down adjusted p-values (Holm 1979) for a family of tests, in the order given. Compare
// each with the level for the whole family.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace kernelpro
