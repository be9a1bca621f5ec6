// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/randomised.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/error.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLowest = 3;  // use the shortest 1/3 of the times
constexpr double kQuantile = 0.25;
constexpr int kSwaps = 2000;
constexpr int kHalvings = 12;  // bisection steps for a bound, in logarithms
constexpr std::size_t kFewest = 7;

// Mean of the lowest third.
double low_mean(std::vector<double>& scratch) {
  const std::size_t count = std::max<std::size_t>(1, scratch.size() / kLowest);
  const auto end = scratch.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(scratch.begin(), end - 1, scratch.end());
  return std::accumulate(scratch.begin(), end, 0.0) / static_cast<double>(count);
}

class SwapTest {
 public:
  // Times are logarithms.
  SwapTest(std::vector<double> a, std::vector<double> b, std::uint64_t seed)
      : a_(std::move(a)), b_(std::move(b)), seed_(seed) {}

  // Is the observation too far out for a true ratio of exp(r)? `above`, or below: are the sides as
  // far apart under at most a fraction `level` of all swaps?
  bool rejects(double r, bool above, double level) const {
    std::mt19937_64 random(seed_);
    const double observed = difference(r, nullptr);
    int as_far = 1;  // the observed order
    for (int k = 0; k < kSwaps; ++k) {
      if (as_far > level * (1 + kSwaps)) return false;
      const double swapped = difference(r, &random);
      as_far += (above ? swapped >= observed : swapped <= observed) ? 1 : 0;
    }
    return as_far <= level * (1 + kSwaps);
  }

 private:
  double difference(double r, std::mt19937_64* random) const {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      if (random != nullptr && i % 64 == 0) bits = (*random)();
      const bool swap = random != nullptr && ((bits >> (i % 64)) & 1) != 0;
      one_[i] = swap ? b_[i] : a_[i] - r;
      other_[i] = swap ? a_[i] - r : b_[i];
    }
    const double one = low_mean(one_);
    return one - low_mean(other_);
  }

  std::vector<double> a_, b_;
  std::uint64_t seed_;
  mutable std::vector<double> one_ = a_, other_ = a_;
};

}  // namespace

Interval randomised_ratio(const std::vector<double>& incumbent,
                          const std::vector<double>& candidate, double alpha, std::uint64_t seed,
                          Ends wanted) {
  KP_ASSERT(!incumbent.empty() && incumbent.size() == candidate.size());
  std::vector<double> a, b;
  double least = INFINITY, most = -INFINITY;
  for (std::size_t i = 0; i < incumbent.size(); ++i) {
    KP_ASSERT(incumbent[i] > 0 && candidate[i] > 0);
    a.push_back(std::log(incumbent[i]));
    b.push_back(std::log(candidate[i]));
    least = std::min(least, a[i] - b[i]);
    most = std::max(most, a[i] - b[i]);
  }
  std::vector<double> scratch = a;
  double mid = low_mean(scratch);
  scratch = b;
  mid -= low_mean(scratch);
  least = std::min(least, mid);
  most = std::max(most, mid);
  if (a.size() < kFewest) return {std::exp(least), std::exp(mid), std::exp(most)};
  const SwapTest test(std::move(a), std::move(b), seed);
  const auto bound = [&](double outside, bool above) {
    double inside = mid;
    if (!test.rejects(outside, above, alpha / 2)) return outside;
    for (int k = 0; k < kHalvings; ++k) {
      const double middle = (outside + inside) / 2;
      (test.rejects(middle, above, alpha / 2) ? outside : inside) = middle;
    }
    return outside;
  };
  const bool low = wanted == Ends::kLow || wanted == Ends::kBoth;
  const bool high = wanted == Ends::kHigh || wanted == Ends::kBoth;
  return {std::exp(low ? bound(least, true) : mid), std::exp(mid),
          std::exp(high ? bound(most, false) : mid)};
}

Interval undisturbed_time(const std::vector<double>& times) {
  return {*std::min_element(times.begin(), times.end()), quantile(times, kQuantile), median(times)};
}

}  // namespace kernelpro
