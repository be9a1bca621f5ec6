// SPDX-License-Identifier: Apache-2.0
#include "diagnose/roofline/model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpro {
namespace {

constexpr const char* kDram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kFmaPipe = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kLatency = "smsp__average_warp_latency_per_inst_issued.ratio";

Evidence counted(double dram, double fma) {
  Evidence e;
  e.set(kDram, dram, Level::kCounters, "cupti");
  e.set(kFmaPipe, fma, Level::kCounters, "cupti");
  return e;
}

TEST(KernelModel, ASaturatedResourceHoldsTheTime) {
  const Evidence e = counted(92, 10);
  const KernelModel model(e, nullptr, {});
  EXPECT_TRUE(model.counted());
  EXPECT_EQ(model.busiest(), Resource::kDram);
  EXPECT_NEAR(model.demand(), 1, 1e-9);
  EXPECT_NEAR(model.waiting(), 0, 1e-3);
  EXPECT_EQ(model.bound(), Bound::kMemory);
  // Half the traffic is half the time; fewer multiply-adds or shorter waits gain nothing.
  EXPECT_NEAR(model.gain(Effect().scale(Resource::kDram, 0.5)).likely, 2, 1e-6);
  EXPECT_NEAR(model.gain(Effect().scale(Resource::kFma, 0.1)).likely, 1, 1e-6);
  Effect patient;
  patient.waiting = 0;
  EXPECT_NEAR(model.gain(patient).upper, 1, 1e-6);
}

TEST(KernelModel, WaitingHoldsTheTimeWhereNothingIsBusy) {
  const Evidence e = counted(23, 19);
  const KernelModel model(e, nullptr, {});
  EXPECT_EQ(model.bound(), Bound::kLatency);
  EXPECT_GT(model.waiting(), 0.95);
  Effect half;
  half.waiting = 0.5;
  const Gain gain = model.gain(half);
  EXPECT_GT(gain.likely, 1.6);
  EXPECT_LT(gain.likely, 2.0);
  EXPECT_NEAR(gain.upper, 4, 1e-6);  // device memory is a quarter busy
  EXPECT_NEAR(model.gain(Effect().scale(Resource::kDram, 0.1)).likely, 1, 0.05);
}

TEST(KernelModel, TheSecondBusiestIsTheNextWall) {
  const Evidence e = counted(92, 76);
  const KernelModel model(e, nullptr, {});
  const Gain gain = model.gain(Effect().scale(Resource::kDram, 0.1));
  EXPECT_NEAR(gain.likely, 0.95 / 0.76, 1e-6);
}

TEST(KernelModel, IdleMultiprocessorsStretchTheRest) {
  Evidence e = counted(46, 10);
  e.set("sm__cycles_active.avg", 500, Level::kCounters, "cupti");
  e.set("gpc__cycles_elapsed.max", 1000, Level::kCounters, "cupti");
  const KernelModel model(e, nullptr, {});
  EXPECT_NEAR(model.idle(), 0.5, 1e-9);
  Effect full;
  full.idle = 0;
  EXPECT_NEAR(model.gain(full).likely, 2, 1e-6);
}

TEST(KernelModel, StallsAreSharesOfTheWaiting) {
  Evidence e = counted(20, 20);
  e.set(kLatency, 21, Level::kCounters, "cupti");
  e.set("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 15,
        Level::kCounters, "cupti");
  const KernelModel model(e, nullptr, {});
  EXPECT_NEAR(*model.stall(Stall::kLongScoreboard), 0.75, 1e-9);
  EXPECT_FALSE(model.stall(Stall::kBarrier));
}

TEST(KernelModel, WithoutCountersTheoryStandsIn) {
  const Evidence e;
  Roofline roof;
  roof.fraction = 0.5;
  const KernelModel model(e, nullptr, roof);
  EXPECT_FALSE(model.counted());
  EXPECT_EQ(model.bound(), Bound::kUnknown);
  Effect none;
  none.waiting = 0;
  EXPECT_NEAR(model.gain(none).upper, 2, 1e-6);
}

TEST(KernelModel, NothingDoneGainsNothing) {
  for (const double dram : {0.0, 30.0, 70.0, 92.0, 100.0}) {
    const Evidence e = counted(dram, 35);
    const KernelModel model(e, nullptr, {});
    EXPECT_NEAR(model.gain({}).likely, 1, 1e-9) << dram;
    EXPECT_GE(model.gain({}).upper, 1) << dram;
  }
}

}  // namespace
}  // namespace kernelpro
