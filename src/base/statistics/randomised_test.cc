// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/randomised.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kernelpro {
namespace {

// Two thirds of the turns are late, by up to four times their length.
double busy_time(double work, std::mt19937_64& random) {
  const double noise = std::exp(std::normal_distribution<double>(0, 0.02)(random));
  if (random() % 3 == 0) return work * noise;
  return work * noise * (1 + std::uniform_real_distribution<double>(0, 4)(random));
}

struct Shares {
  double covered = 0, above = 0, below = 0, median_width = 0;
};

Shares simulate(double truth, int pairs, int trials) {
  std::mt19937_64 random(99);
  Shares shares;
  std::vector<double> widths;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> a, b;
    for (int i = 0; i < pairs; ++i) {
      a.push_back(busy_time(truth, random));
      b.push_back(busy_time(1, random));
    }
    const Interval ratio = randomised_ratio(a, b, 0.05, static_cast<std::uint64_t>(t));
    shares.covered += ratio.low <= truth && truth <= ratio.high;
    shares.above += ratio.low > 1;
    shares.below += ratio.high < 1;
    widths.push_back(ratio.high / ratio.low);
  }
  shares.covered /= trials;
  shares.above /= trials;
  shares.below /= trials;
  shares.median_width = median(widths);
  return shares;
}

TEST(RandomisedRatio, HoldsTheTruthAsOftenAsPromised) {
  for (const double truth : {1.0, 1.5}) {
    const Shares shares = simulate(truth, 27, 25);
    EXPECT_GE(shares.covered, 0.8) << truth;
  }
  EXPECT_LE(simulate(1, 12, 50).above, 0.08);
}

TEST(RandomisedRatio, SeesThroughABusyMachine) {
  EXPECT_GT(simulate(2, 27, 10).above, 0.8);
  EXPECT_GT(simulate(0.5, 27, 10).below, 0.8);
}

TEST(RandomisedRatio, IsNarrowWhereNothingDisturbs) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.004);
  std::vector<double> a, b;
  for (int i = 0; i < 30; ++i) {
    a.push_back(1.1 * std::exp(noise(random)));
    b.push_back(std::exp(noise(random)));
  }
  const Interval ratio = randomised_ratio(a, b, 0.05, 1);
  EXPECT_GT(ratio.low, 1.085);
  EXPECT_LT(ratio.high, 1.115);
}

TEST(RandomisedRatio, FewPairsBoundNothing) {
  const Interval ratio = randomised_ratio({2, 4, 3}, {1, 1, 1}, 0.05, 1);
  EXPECT_DOUBLE_EQ(ratio.low, 2);
  EXPECT_DOUBLE_EQ(ratio.high, 4);
}

TEST(UndisturbedTime, IsTheLowerQuartile) {
  const Interval time = undisturbed_time({9, 1, 2, 3, 8});
  EXPECT_EQ(time.low, 1);
  EXPECT_EQ(time.mid, 2);
  EXPECT_EQ(time.high, 3);
}

}  // namespace
}  // namespace kernelpro
