// SPDX-License-Identifier: Apache-2.0
// Two treatments of the same subjects: is there a difference, how large is it, how sure is it.
// Pure functions; paired_test.cc compares them with SciPy's and statsmodels' figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/statistics/statistics.h"

namespace kernelpro {

// Wilcoxon's signed-rank test of differences, two-sided (Wilcoxon 1945; as scipy.stats.wilcoxon
// with zero_method "wilcox": differences of zero are left out, ties get their mean rank).
struct SignedRank {
  int pairs = 0;     // that differ
  double plus = 0;   // sum of the ranks of positive differences
  double minus = 0;  // of negative ones
  double p = 1;      // 1 when nothing differs
  // True: from the distribution of all sign patterns; false: normal approximation with corrections
  // for ties and continuity. Exact for at most 25 differences with neither ties nor zeros.
  bool exact = true;
  // Matched-pairs rank-biserial correlation (Kerby 2014): (plus - minus) / (plus + minus), from -1
  // to 1; 0 when nothing differs.
  double effect = 0;
};
SignedRank signed_rank(const std::vector<double>& differences);

// Percentile bootstrap of the mean (Efron 1979): `resamples` means of as many values drawn with
// replacement, their (1 - level) / 2 and (1 + level) / 2 quantiles; `mid` is the mean itself. The
// same seed gives the same interval on every machine. REQUIRES: not empty.
Interval bootstrap_mean(const std::vector<double>& values, std::uint64_t seed = 1,
                        int resamples = 10000, double level = 0.95);

// Holm's step-down adjustment (Holm 1979) for a family of tests, in the order given: each is what
// to compare with the level that all of them together shall keep.
std::vector<double> holm(const std::vector<double>& p);

}  // namespace kernelpro
