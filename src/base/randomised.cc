// SPDX-License-Identifier: Apache-2.0
#include "base/randomised.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"

namespace kernelpro {

namespace {

constexpr double kQuantile = 0.25;
constexpr int kSwaps = 1000;
constexpr int kHalvings = 14;  // of the search for a bound, in logarithms
constexpr std::size_t kFewest = 7;

double lower_quartile(std::vector<double>& scratch) {
  const double at = kQuantile * static_cast<double>(scratch.size() - 1);
  const auto below = scratch.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(scratch.begin(), below, scratch.end());
  const double low = *below;
  const double share = at - std::floor(at);
  if (share == 0) return low;
  return low + share * (*std::min_element(below + 1, scratch.end()) - low);
}

class SwapTest {
 public:
  // In logarithms.
  SwapTest(std::vector<double> a, std::vector<double> b, std::uint64_t seed)
      : a_(std::move(a)), b_(std::move(b)), seed_(seed) {}

  // Share of swaps under which the quartiles lie at least as far apart as they do, where the true
  // ratio is exp(r): above it, or below.
  double chance(double r, bool above) const {
    std::mt19937_64 random(seed_);
    const double observed = difference(r, nullptr);
    int as_far = 0;
    for (int k = 0; k < kSwaps; ++k) {
      const double swapped = difference(r, &random);
      as_far += (above ? swapped >= observed : swapped <= observed) ? 1 : 0;
    }
    return (1.0 + as_far) / (1.0 + kSwaps);
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
    const double one = lower_quartile(one_);
    return one - lower_quartile(other_);
  }

  std::vector<double> a_, b_;
  std::uint64_t seed_;
  mutable std::vector<double> one_ = a_, other_ = a_;
};

}  // namespace

Interval randomised_ratio(const std::vector<double>& incumbent,
                          const std::vector<double>& candidate, double alpha, std::uint64_t seed) {
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
  double mid = lower_quartile(scratch);
  scratch = b;
  mid -= lower_quartile(scratch);
  least = std::min(least, mid);
  most = std::max(most, mid);
  if (a.size() < kFewest) return {std::exp(least), std::exp(mid), std::exp(most)};
  const SwapTest test(std::move(a), std::move(b), seed);
  const auto bound = [&](double outside, bool above) {
    double inside = mid;
    if (test.chance(outside, above) > alpha / 2) return outside;
    for (int k = 0; k < kHalvings; ++k) {
      const double middle = (outside + inside) / 2;
      (test.chance(middle, above) > alpha / 2 ? inside : outside) = middle;
    }
    return outside;
  };
  return {std::exp(bound(least, true)), std::exp(mid), std::exp(bound(most, false))};
}

Interval undisturbed_time(const std::vector<double>& times) {
  return {*std::min_element(times.begin(), times.end()), quantile(times, kQuantile), median(times)};
}

}  // namespace kernelpro
