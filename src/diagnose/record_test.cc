// SPDX-License-Identifier: Apache-2.0
#include "diagnose/record.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(ToolRecord, WithoutHistoryPromisesStand) {
  EXPECT_DOUBLE_EQ(ToolRecord().calibrated("small-grid", 1.7, 3), 1.7);
}

TEST(ToolRecord, BrokenPromisesShrinkAndKeptOnesStay) {
  ToolRecord record;
  for (int i = 0; i < 40; ++i) {
    record.add("boaster", 3.0, 1.1);
    record.add("honest", 1.5, 1.5);
    record.add("modest", 1.2, 2.0);
  }
  EXPECT_LT(record.calibrated("boaster", 3, 9), 1.25);
  EXPECT_NEAR(record.calibrated("honest", 1.5, 9), 1.5, 1e-9);
  EXPECT_GT(record.calibrated("modest", 1.2, 9), 1.3);
  EXPECT_DOUBLE_EQ(record.calibrated("modest", 1.2, 1.25), 1.25);
  EXPECT_DOUBLE_EQ(record.tools.at("boaster").hit_rate(), 1);
  EXPECT_NEAR(record.tools.at("honest").mean_gain(), 1.5, 1e-9);
}

TEST(ToolRecord, OneFailureIsNoVerdict) {
  ToolRecord record;
  record.add("unlucky", 1.5, 0);
  EXPECT_GT(record.calibrated("unlucky", 1.5, 3), 1.3);
  EXPECT_EQ(record.tools.at("unlucky").hits, 0);
  record.add("bold", 4, 0);
  EXPECT_GT(record.calibrated("bold", 4, 9), 2.5);
}

TEST(ToolRecord, JsonRoundTrips) {
  ToolRecord record;
  record.add("small-grid", 1.5, 1.4);
  record.add("small-grid", 2.0, 0);
  const auto again = record_from_json(record_to_json(record));
  ASSERT_TRUE(again);
  EXPECT_EQ(record_to_json(*again), record_to_json(record));
  EXPECT_FALSE(record_from_json("{\"version\": 99}"));
  EXPECT_FALSE(record_from_json("nonsense"));
}

}  // namespace
}  // namespace kernelpro
