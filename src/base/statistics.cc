// SPDX-License-Identifier: Apache-2.0
#include "base/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace kernelpro {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const std::size_t below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double grouped_median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double mid = values[values.size() / 2];
  double tick = 0;  // the smallest distance that is no rounding error of the numbers themselves
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double gap = values[i] - values[i - 1];
    if (gap > 1e-6 * mid && (tick == 0 || gap < tick)) tick = gap;
  }
  double below = 0, equal = 0;
  for (const double value : values) {
    if (std::fabs(value - mid) <= tick / 2) {
      ++equal;
    } else if (value < mid) {
      ++below;
    }
  }
  if (equal < 3 || tick == 0) return median(std::move(values));
  const double half = static_cast<double>(values.size()) / 2;
  return mid - tick / 2 + tick * (half - below) / equal;
}

double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

namespace {
// Largest k such that P(Binomial(n, 1/2) < k) <= 0.025: the k-th smallest and the k-th largest
// value enclose the median with at least 95 %. 0 when n is too small.
int median_rank(int n) {
  double term = std::exp2(-n);
  double cumulative = 0;
  int k = 0;
  while (k < n / 2) {
    cumulative += term;
    if (cumulative > 0.025) break;
    term *= static_cast<double>(n - k) / (k + 1);
    ++k;
  }
  return k;
}
}  // namespace

Interval median_interval(std::vector<double> values) {
  KP_ASSERT(!values.empty());
  std::sort(values.begin(), values.end());
  const int n = static_cast<int>(values.size());
  const int k = n > 1000 ? static_cast<int>(n / 2.0 - 0.98 * std::sqrt(n)) : median_rank(n);
  const int low = std::max(k - 1, 0);
  return {values[static_cast<std::size_t>(low)], median(values),
          values[static_cast<std::size_t>(n - 1 - low)]};
}

Interval paired_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  KP_ASSERT(a.size() == b.size());
  std::vector<double> ratios(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) ratios[i] = a[i] / b[i];
  return median_interval(std::move(ratios));
}

}  // namespace kernelpro
