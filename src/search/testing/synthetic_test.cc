// SPDX-License-Identifier: Apache-2.0
#include "search/testing/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"

namespace kernelpro::testing {
namespace {

LandscapeParameters fitted() {
  const auto text = read_file(KERNELPRO_SOURCE_DIR "/bench/synthetic/landscape.json");
  EXPECT_TRUE(text);
  const auto parameters = landscape_from_json(text.value_or(""));
  EXPECT_TRUE(parameters);
  return parameters.value_or(LandscapeParameters());
}

TEST(Synthetic, WhatIsNoLandscapeIsRefused) {
  EXPECT_FALSE(landscape_from_json("{}"));
  EXPECT_FALSE(landscape_from_json("rubbish"));
  EXPECT_FALSE(landscape_from_json(
      "{\"parameters\":{\"starts\":[1],\"failure_rates\":[],\"new_design\":1}}"));
}

TEST(Synthetic, AChildFollowsFromTheSeedAndThePathAlone) {
  const LandscapeParameters p = fitted();
  Synthetic one(p, 7, true);
  Synthetic other(p, 7, true);
  other.child(1);
  const NodeResult second = other.child(1);
  one.child(1);
  one.child(2);  // in between
  const NodeResult same = one.child(1);
  EXPECT_EQ(same.correct, second.correct);
  EXPECT_EQ(same.time_us, second.time_us);
  Synthetic third(p, 8, true);
  third.child(1);
  EXPECT_NE(third.child(1).time_us, second.time_us);
}

// The generator gives back what it was fitted to: shares of failures and of silent diagnoses.
TEST(Synthetic, FailuresAndDiagnosesAreAsOftenAsRecorded) {
  const LandscapeParameters p = fitted();
  double rate = 0;
  for (const double each : p.failure_rates) rate += each / static_cast<double>(p.starts.size());
  int failed = 0;
  int silent = 0;
  constexpr int kSeeds = 4000;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Synthetic writer(p, seed, true);
    const NodeResult child = writer.child(1);
    failed += child.correct ? 0 : 1;
    silent += child.correct && child.likely == 0 ? 1 : 0;
    if (child.correct) {
      EXPECT_GT(child.time_us, 0);
      EXPECT_LE(child.fraction, 1);
      EXPECT_LE(child.likely, 1 / child.fraction * 1.0001) << "no gain beyond the speed of light";
    }
  }
  // Four standard deviations of a share.
  const auto slack = [](double share) { return 4 * std::sqrt(share * (1 - share) / kSeeds); };
  EXPECT_NEAR(static_cast<double>(failed) / kSeeds, rate, slack(rate));
  EXPECT_NEAR(static_cast<double>(silent) / (kSeeds - failed), p.silent, slack(p.silent));
}

TEST(Synthetic, WhoRemembersRepeatsNoFailure) {
  LandscapeParameters p = fitted();
  for (double& rate : p.failure_rates) rate = 0.5;
  int forgotten = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Synthetic remembers(p, seed, true);
    Synthetic forgets(p, seed, false);
    for (int i = 0; i < 40; ++i) {
      remembers.child(1);
      forgets.child(1);
    }
    EXPECT_EQ(remembers.repeated_failures(), 0);
    forgotten += forgets.repeated_failures();
  }
  EXPECT_GT(forgotten, 50 * 5);
}

TEST(Synthetic, AVariationNeverPassesItsDesignsFloor) {
  LandscapeParameters p = fitted();
  p.new_design = 1e-9;  // variations alone
  p.step_mean = 1;
  for (double& rate : p.failure_rates) rate = 0;
  Synthetic writer(p, 3, true);
  const double start = writer.root().time_us;
  for (std::int64_t parent = 1; parent < 20; ++parent) {
    EXPECT_GE(writer.child(parent).time_us, start * 0.9999) << "the start is at its floor";
  }
}

}  // namespace
}  // namespace kernelpro::testing
