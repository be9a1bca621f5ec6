// SPDX-License-Identifier: Apache-2.0
// Statistics of repeated measurements. Pure functions; inputs are copied where they are sorted.
#pragma once

#include <vector>

namespace kernelpro {

struct Interval {
  double low = 0;
  double mid = 0;
  double high = 0;
};

// 0 for an empty input.
double median(std::vector<double> values);
// The median of values rounded by a clock with coarse ticks: values equal to the middle one count
// as spread evenly over their tick, whose width is the smallest distance between values (grouped
// median; Snedecor and Cochran, Statistical Methods, 3.9). The plain median when the values near
// the middle differ.
double grouped_median(std::vector<double> values);
// Linear interpolation between order statistics; q in [0,1].
double quantile(std::vector<double> values, double q);
double geometric_mean(const std::vector<double>& values);
Interval mean_ratio(const std::vector<Interval>& ratios);  // geometric, of their ends, too

// Median with a distribution-free 95 % confidence interval from order statistics (binomial;
// Conover, Practical Nonparametric Statistics, 3.2). With fewer than 6 values the interval is the
// range. REQUIRES: not empty.
Interval median_interval(std::vector<double> values);

// Median of the pairwise ratios a[i]/b[i], with the same interval. For alternating measurements,
// where drift hits both sides of a pair. REQUIRES: same size, not empty, b > 0.
Interval paired_ratio(const std::vector<double>& a, const std::vector<double>& b);

// Centre of ratios with its 95 % confidence interval: from six on, median_interval's; of two to
// five, whose range covers less, the geometric mean with Student's t on their logarithms. One ratio
// tells nothing of its scatter: its interval has no width. REQUIRES: not empty, each > 0.
Interval ratio_interval(const std::vector<double>& ratios);

// Mean of a few normally distributed values with its 95 % confidence interval (Student's t).
// REQUIRES: at least two values.
Interval mean_interval(const std::vector<double>& values);
// Standard deviation over the mean; 0 with fewer than two values.
double variation(const std::vector<double>& values);

}  // namespace kernelpro
