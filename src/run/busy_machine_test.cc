// SPDX-License-Identifier: Apache-2.0
// Runs on a machine that is busy, or was when its ceilings were measured: the whole loop with a
// real store and search; compiling, running and measuring are faked.
#include <gtest/gtest.h>

#include <vector>

#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/store/store.h"
#include "run/testing/whole_loop.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;
using testing::smooth_landscape;

struct BusyMachine : testing::LoopTest {
  RunSettings settings_for(int evaluations, double near_ceiling = 0) const {
    RunSettings settings = LoopTest::settings_for(run, evaluations);
    settings.near_ceiling = near_ceiling;
    return settings;
  }
};

// 65536 elements in and out: 524288 bytes, which the fastest setting moves in 100 us.
constexpr double kFastest = 524288 / 100e-6;

Machine with_copy(double bytes_per_s) {
  Machine machine;
  machine.name = "fake machine";
  machine.ceilings.copy_bytes_per_s = bytes_per_s;
  machine.ceilings.fma_flops_per_s = 1e11;
  machine.ceilings.rounds = 2;
  return machine;
}

TEST_F(BusyMachine, ACeilingThatIsBeatenIsMeasuredAgainAndEndsNothing) {
  int measured = 0;
  fake.copy_bytes_per_s = kFastest / 100;  // measured under load: the start beats it
  fake.remeasure = [&]() -> Result<Machine> { return ++measured, with_copy(1.25 * kFastest); };
  const RunSettings settings = settings_for(60, 0.95);
  const auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(result->evaluations, 60) << result->stopped_by;
  EXPECT_NEAR(result->fraction_of_ceiling, 0.8 * 100 / result->best_us, 0.01);
  // Earlier results and the report also use the better ceiling.
  const auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->header()->machine.ceilings.copy_bytes_per_s, 1.25 * kFastest);
  const auto stored = (*store)->candidates();
  ASSERT_TRUE(stored) << stored.error().text();
  for (const StoredCandidate& each : *stored) {
    if (each.known.evaluation.correct() == nullptr) continue;
    EXPECT_LE(each.known.diagnosis.fraction_of_ceiling, 0.81) << each.known.id;
    EXPECT_EQ(each.evidence.get("ceiling.copy_bandwidth"), 1.25 * kFastest);
  }
}

TEST_F(BusyMachine, ACeilingOfABusyMachineIsMeasuredBeforeItEndsARun) {
  int measured = 0;
  fake.copy_bytes_per_s = kFastest;
  fake.quiet = false;
  fake.remeasure = [&]() -> Result<Machine> { return ++measured, with_copy(kFastest); };
  const RunSettings settings = settings_for(400, 0.9);
  const auto quiet = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(quiet) << quiet.error().text();
  EXPECT_EQ(measured, 1);
  EXPECT_TRUE(contains(quiet->stopped_by, "of the measured ceiling")) << quiet->stopped_by;
}

TEST_F(BusyMachine, ACeilingThatStaysDisturbedEndsNoRun) {
  fake.copy_bytes_per_s = kFastest;
  fake.quiet = false;
  fake.remeasure = [&]() -> Result<Machine> {
    Machine machine = with_copy(kFastest);
    machine.ceilings.quiet = false;
    return machine;
  };
  const RunSettings settings = settings_for(60, 0.9);
  const auto busy = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(busy) << busy.error().text();
  EXPECT_EQ(busy->evaluations, 60) << busy->stopped_by;
}

TEST_F(BusyMachine, LoadIsToldOnce) {
  fake.observed = {{"load.foreign_cpu", 0.63}};
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(8), observer));
  EXPECT_EQ(count(Event::kBusy), 1);
  for (const Progress& p : seen) {
    if (p.event == Event::kBusy) {
      EXPECT_EQ(p.detail, "other processes used 63 % of this machine; timing takes longer");
    }
  }
}

TEST_F(BusyMachine, ProgressHasTheIntervalOfTheTurnsAndThenTheConfirmedFigure) {
  fake.confirm_factor = [] { return 2.0; };  // half as fast in the confirmation
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(30), observer));
  double best = 1;
  for (const Progress& p : seen) {
    if (p.event != Event::kBest) continue;
    best = p.best_speedup;
    if (best > 1) {
      EXPECT_LT(p.best_speedup_low, p.best_speedup);
      EXPECT_GT(p.best_speedup_high, p.best_speedup);
    }
  }
  EXPECT_GT(best, 1);
  ASSERT_EQ(seen.back().event, Event::kConfirmed);
  EXPECT_NEAR(seen.back().best_speedup, best / 2, 0.05 * best);
}

}  // namespace
}  // namespace kernelpro
