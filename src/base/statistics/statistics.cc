// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/statistics.h"

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
  double tick = 0;  // the smallest gap that is not a rounding error of the doubles
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

Interval mean_ratio(const std::vector<Interval>& ratios) {
  std::vector<double> low, mid, high;
  for (const Interval& each : ratios) {
    low.push_back(each.low);
    mid.push_back(each.mid);
    high.push_back(each.high);
  }
  return {geometric_mean(low), geometric_mean(mid), geometric_mean(high)};
}

namespace {
// Largest k such that P(Binomial(n, 1/2) < k) <= 0.025: the k-th smallest and the k-th largest
// value bracket the median with at least 95 % confidence. 0 when n is too small.
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

namespace {

// Quantiles of Student's t at 97.5 %, for 1 to 30 degrees of freedom.
constexpr double kStudent[] = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                               2.2622,  2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199,
                               2.1098,  2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639,
                               2.0595,  2.0555, 2.0518, 2.0484, 2.0452, 2.0423};

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(const std::vector<double>& values) {
  Moments m;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) m.mean += value / count;
  for (const double value : values) m.deviation += (value - m.mean) * (value - m.mean);
  m.deviation = std::sqrt(m.deviation / (count - 1));
  return m;
}

}  // namespace

Interval mean_interval(const std::vector<double>& values) {
  KP_ASSERT(values.size() >= 2);
  const Moments m = moments(values);
  const std::size_t freedom = std::min(values.size() - 1, std::size(kStudent));
  const double half =
      kStudent[freedom - 1] * m.deviation / std::sqrt(static_cast<double>(values.size()));
  return {m.mean - half, m.mean, m.mean + half};
}

Interval ratio_interval(const std::vector<double>& ratios) {
  if (ratios.size() < 2 || median_rank(static_cast<int>(ratios.size())) > 0) {
    return median_interval(ratios);
  }
  std::vector<double> logarithms;
  for (const double ratio : ratios) logarithms.push_back(std::log(ratio));
  const Interval mean = mean_interval(logarithms);
  return {std::exp(mean.low), std::exp(mean.mid), std::exp(mean.high)};
}

double variation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const Moments m = moments(values);
  return m.mean == 0 ? 0 : m.deviation / m.mean;
}

}  // namespace kernelpro
