// SPDX-License-Identifier: Apache-2.0
#include "suite/measures.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpro {
namespace {

// By hand: 4 tasks, speedups 0.6, 1.2, 4.5 and a failure.
TEST(Measures, ByHand) {
  const Measures m = measure_scores(
      {{"a", true, 0.6, 0.5}, {"b", true, 1.2, 0}, {"c", true, 4.5, 0.9}, {"d", false, 0, 0}});
  EXPECT_EQ(m.tasks, 4);
  EXPECT_EQ(m.correct, 3);
  EXPECT_DOUBLE_EQ(m.success, 0.75);
  const std::vector<double> shares = {0.75, 0.75, 0.5, 0.5, 0.25, 0.25, 0.25};
  ASSERT_EQ(m.fast.size(), shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    EXPECT_EQ(m.fast[i].first, kFastThresholds[i]);
    EXPECT_DOUBLE_EQ(m.fast[i].second, shares[i]) << "fast_" << m.fast[i].first;
  }
  EXPECT_NEAR(m.geomean_correct, std::cbrt(0.6 * 1.2 * 4.5), 1e-12);
  EXPECT_NEAR(m.geomean_all, std::pow(0.6 * 1.2 * 4.5, 0.25), 1e-12);
  EXPECT_DOUBLE_EQ(m.median_correct, 1.2);
  EXPECT_NEAR(m.fraction, std::sqrt(0.5 * 0.9), 1e-12);
}

// KernelBench: strictly more than p, so a speedup of exactly 1 is not in fast_1.
TEST(Measures, ThresholdsAreStrict) {
  const Measures m = measure_scores({{"a", true, 1.0, 0}});
  EXPECT_EQ(m.fast[2].second, 1);
  EXPECT_EQ(m.fast[3].second, 0);
}

TEST(Measures, WhatHasNoTimeIsNotScored) {
  const Measures m = measure_scores({{"a", true, 0, 0}, {"b", true, 2, 0}, {"c", false, 0, 0}});
  EXPECT_EQ(m.tasks, 2);
  EXPECT_EQ(m.not_compared, 1);
  EXPECT_EQ(m.success, 0.5);
  EXPECT_EQ(measure_scores({}).tasks, 0);
  EXPECT_EQ(measure_scores({}).geomean_all, 0);
}

TEST(Compare, PairsTasksAndCountsFailuresAsOne) {
  const std::vector<Score> a = {{"x", true, 2, 0}, {"y", false, 0, 0}, {"z", true, 3, 0}};
  const std::vector<Score> b = {{"y", true, 2, 0}, {"x", true, 4, 0}, {"w", true, 9, 0}};
  const std::vector<ArmComparison> all = compare_arms({{"a", a}, {"b", b}}, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].pairs, 2);  // x: 4 against 2, y: 2 against 1
  EXPECT_NEAR(all[0].ratio, 2, 1e-12);
  EXPECT_EQ(all[0].only_b, 1);
  EXPECT_EQ(all[0].only_a, 0);
  EXPECT_EQ(all[0].test.effect, 1);
}

TEST(Compare, EveryPairOfArmsAndHolmOverThem) {
  std::vector<Score> slow, fast;
  for (int i = 0; i < 12; ++i) {
    slow.push_back({"t" + std::to_string(i), true, 1.0 + 0.01 * i, 0});
    fast.push_back({"t" + std::to_string(i), true, 2.0 + 0.05 * i, 0});
  }
  const std::vector<ArmComparison> all =
      compare_arms({{"slow", slow}, {"fast", fast}, {"again", slow}}, 1);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].b, "fast");
  EXPECT_NEAR(all[0].test.p, std::exp2(-11), 1e-12);  // 2 / 2^12
  EXPECT_NEAR(all[0].adjusted_p, 3 * std::exp2(-11), 1e-12);
  EXPECT_EQ(all[1].test.p, 1);  // slow against itself
  EXPECT_EQ(all[1].ratio, 1);
  EXPECT_LT(all[2].high, 1);
}

}  // namespace
}  // namespace kernelpro
