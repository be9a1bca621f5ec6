// SPDX-License-Identifier: Apache-2.0
#include "run/store/comparable.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpro {
namespace {

Evaluation timed(double us, const std::string& incumbent = "", double ratio = 1, double low = 1,
                 double high = 1) {
  Correct correct;
  correct.timings.push_back({"large", us, us, us, 20, "calls in turn"});
  if (!incumbent.empty()) correct.versus = Correct::Versus{incumbent, ratio, low, high};
  Evaluation evaluation;
  evaluation.outcome = correct;
  return evaluation;
}

TEST(Comparables, MediansOfDifferentTimesAreNeverDivided) {
  Comparables times;
  // The start was timed on a busy machine, the candidate on a quiet one: 210x by their medians.
  const Comparable start = times.add("start", timed(21000));
  const Comparable best = times.add("best", timed(100, "start", 13.1, 12.8, 13.5));
  const SpeedUp found = speedup(start, best);
  EXPECT_DOUBLE_EQ(found.ratio, 13.1);
  EXPECT_NEAR(found.low, 12.8, 1e-9);
  EXPECT_NEAR(found.high, 13.5, 1e-9);
}

TEST(Comparables, DoubtAddsUpAlongTheWay) {
  Comparables times;
  const Comparable start = times.add("start", timed(1000));
  times.add("first", timed(500, "start", 2, 2 / 1.1, 2 * 1.1));
  const Comparable second = times.add("second", timed(250, "first", 2, 2 / 1.1, 2 * 1.1));
  const SpeedUp found = speedup(start, second);
  EXPECT_DOUBLE_EQ(found.ratio, 4);
  const double doubt = std::exp(std::sqrt(2.0) * std::log(1.1));
  EXPECT_NEAR(found.low, 4 / doubt, 1e-9);
  EXPECT_NEAR(found.high, 4 * doubt, 1e-9);
}

TEST(Comparables, AnOpenIntervalStaysOpen) {
  Comparables times;
  const Comparable start = times.add("start", timed(1000));
  const Comparable best = times.add("best", timed(500, "start", 2, 0, INFINITY));
  EXPECT_EQ(speedup(start, best).ratio, 2);
  EXPECT_EQ(speedup(start, best).low, 0);
  EXPECT_TRUE(std::isinf(speedup(start, best).high));
  EXPECT_EQ(speedup(start, Comparable()).ratio, 1);
}

}  // namespace
}  // namespace kernelpro
