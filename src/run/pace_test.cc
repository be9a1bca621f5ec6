// SPDX-License-Identifier: Apache-2.0
#include "run/pace.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(Pace, TheNearerBudgetCounts) {
  RunSettings settings;
  settings.max_seconds = 0;
  settings.max_evaluations = 0;
  EXPECT_EQ(seconds_left(settings, 100, 50), 0);  // no budget
  settings.max_evaluations = 20;
  EXPECT_EQ(seconds_left(settings, 10, 2), 0);  // too early to tell
  EXPECT_DOUBLE_EQ(seconds_left(settings, 10, 5), 30);
  settings.max_seconds = 25;
  EXPECT_DOUBLE_EQ(seconds_left(settings, 10, 5), 15);
  settings.max_evaluations = 6;
  EXPECT_DOUBLE_EQ(seconds_left(settings, 10, 5), 2);
  settings.max_evaluations = 3;  // passed
  EXPECT_DOUBLE_EQ(seconds_left(settings, 10, 5), 0);
}

}  // namespace
}  // namespace kernelpro
