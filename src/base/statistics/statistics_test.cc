// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kernelpro {
namespace {

TEST(Statistics, KnownValues) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(quantile({1, 2, 3, 4, 5}, 0), 1);
  EXPECT_EQ(quantile({1, 2, 3, 4, 5}, 1), 5);
  EXPECT_DOUBLE_EQ(quantile({10, 20}, 0.25), 12.5);
  EXPECT_DOUBLE_EQ(geometric_mean({1, 4, 16}), 4);
  EXPECT_EQ(geometric_mean({}), 0);
}

// A clock with 32 ns ticks sees a call of 5.907 us: the plain median is a tick off or right by
// luck, the grouped one resolves values in between.
TEST(Statistics, GroupedMedianSeesBetweenTicks) {
  EXPECT_EQ(grouped_median({}), 0);
  EXPECT_EQ(grouped_median({7}), 7);
  EXPECT_EQ(grouped_median({2, 2, 2}), 2);
  EXPECT_EQ(grouped_median({1, 2, 4, 8}), 3);  // no ties: the plain median
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(5.907, 0.03);
  double worst = 0, worst_plain = 0;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<double> values(400);
    for (double& v : values) v = 0.032 * std::round(noise(random) / 0.032);
    worst = std::max(worst, std::fabs(grouped_median(values) - 5.907));
    worst_plain = std::max(worst_plain, std::fabs(median(values) - 5.907));
  }
  EXPECT_LT(worst, 0.008);
  EXPECT_GT(worst_plain, 0.010);
}

TEST(Statistics, IntervalOfFewValuesIsTheRange) {
  const Interval i = median_interval({5, 1, 3});
  EXPECT_EQ(i.low, 1);
  EXPECT_EQ(i.mid, 3);
  EXPECT_EQ(i.high, 5);
}

// Table of the binomial distribution: for n = 20 the 6th and the 15th value, for 10 the 2nd and
// the 9th.
TEST(Statistics, IntervalTakesTheTabledRanks) {
  std::vector<double> values;
  for (int i = 1; i <= 20; ++i) values.push_back(i);
  EXPECT_EQ(median_interval(values).low, 6);
  EXPECT_EQ(median_interval(values).high, 15);
  values.resize(10);
  EXPECT_EQ(median_interval(values).low, 2);
  EXPECT_EQ(median_interval(values).high, 9);
}

class Coverage : public ::testing::TestWithParam<int> {};

TEST_P(Coverage, IsAtLeast95Percent) {
  const int n = GetParam();
  const int trials = n > 500 ? 1000 : 4000;
  std::mt19937_64 random(12345);
  std::lognormal_distribution<double> skewed(0, 1);  // median 1
  int covered = 0;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> values(static_cast<std::size_t>(n));
    for (double& v : values) v = skewed(random);
    const Interval i = median_interval(values);
    EXPECT_LE(i.low, i.mid);
    EXPECT_LE(i.mid, i.high);
    covered += i.low <= 1 && 1 <= i.high;
  }
  const double share = static_cast<double>(covered) / trials;
  EXPECT_GT(share, 0.95 - 3 * std::sqrt(0.95 * 0.05 / trials));
  // Not uselessly wide either: order statistics of a discrete distribution overshoot a little.
  if (n >= 20) {
    EXPECT_LT(share, 0.985);
  }
}

INSTANTIATE_TEST_SUITE_P(Statistics, Coverage, ::testing::Values(6, 9, 20, 50, 101, 1500));

TEST(Statistics, PairedRatioIgnoresDrift) {
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    const double drift = 1 + 0.05 * i;
    a.push_back(2 * drift);
    b.push_back(1 * drift);
  }
  const Interval ratio = paired_ratio(a, b);
  EXPECT_NEAR(ratio.mid, 2, 1e-12);
  EXPECT_NEAR(ratio.low, 2, 1e-12);
  EXPECT_NEAR(ratio.high, 2, 1e-12);
}

TEST(RatioInterval, OfFewIsWiderThanTheirRange) {
  const Interval two = ratio_interval({2.0, 2.02});
  EXPECT_NEAR(two.mid, std::sqrt(2 * 2.02), 1e-9);
  EXPECT_LT(two.low, 1.9);
  EXPECT_GT(two.high, 2.13);
  const Interval six = ratio_interval({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(six.low, 1);
  EXPECT_EQ(six.mid, 3.5);
  EXPECT_EQ(six.high, 6);
  EXPECT_EQ(ratio_interval({3}).high, 3);
}

// As from scipy.stats.t.interval(0.95, n - 1, mean, sem).
TEST(MeanInterval, IsStudents) {
  const Interval five = mean_interval({10.1, 9.8, 10.3, 10.0, 9.9});
  EXPECT_NEAR(five.mid, 10.02, 1e-12);
  EXPECT_NEAR(five.low, 9.781162, 1e-4);
  EXPECT_NEAR(five.high, 10.258838, 1e-4);
  const Interval two = mean_interval({1, 2});
  EXPECT_NEAR(two.high, 1.5 + 12.7062 * 0.5, 1e-3);
  EXPECT_NEAR(variation({10.1, 9.8, 10.3, 10.0, 9.9}), 0.192354 / 10.02, 1e-5);
  EXPECT_EQ(variation({3}), 0);
}

}  // namespace
}  // namespace kernelpro
