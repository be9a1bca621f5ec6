// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/load.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(Load, IsReadFromWhatWasObserved) {
  const Load load = load_of({{"load.foreign_cpu", 0.63}, {"load.pairs_dropped", 4}});
  EXPECT_TRUE(load.busy());
  EXPECT_EQ(load.pairs_dropped, 4);
  EXPECT_EQ(load_text(load), "other processes used 63 % of this machine");
  EXPECT_FALSE(load_of({}).busy());
  EXPECT_FALSE(load_of({{"load.foreign_cpu", 0.01}}).busy());
  EXPECT_EQ(load_text(load_of({{"load.gpu_processes", 1}})), "1 other process used the GPU");
}

TEST(Load, OfARunIsToldInOneSentence) {
  LoadSummary run;
  EXPECT_EQ(load_text(run), "");
  run.add({0.02, 0, 0, 0});
  EXPECT_EQ(load_text(run), "");
  run.add({0.60, 7, 0, 0});
  run.add({0.40, 2, 0, 0});
  EXPECT_EQ(run.busy, 2);
  EXPECT_NEAR(run.mean_cpu, 0.34, 1e-9);
  EXPECT_EQ(load_text(run),
            "The machine was busy while 2 of 3 candidates were timed: other processes used up to "
            "60 % of it (34 % on average). 9 disturbed pairs of timings were dropped.");
}

}  // namespace
}  // namespace kernelpro
