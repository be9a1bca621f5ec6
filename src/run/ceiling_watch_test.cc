// SPDX-License-Identifier: Apache-2.0
#include "run/ceiling_watch.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

// A call that moves a gigabyte in `time_us`, with a copy ceiling of `copy` bytes per second.
Evidence moved(double time_us, double copy) {
  Evidence e;
  e.set("task.compulsory_bytes", 1e9, Level::kTiming, "task");
  e.set("timing.median", time_us, Level::kTiming, "timing");
  e.set("ceiling.copy_bandwidth", copy, Level::kTiming, "ceilings");
  return e;
}

Machine machine_at(double copy, bool quiet) {
  Machine m;
  m.ceilings.copy_bytes_per_s = copy;
  m.ceilings.quiet = quiet;
  m.ceilings.rounds = 2;
  return m;
}

Result<std::optional<Ceilings>> again(double copy, bool quiet) {
  return std::optional(machine_at(copy, quiet).ceilings);
}

TEST(CeilingWatch, AKernelThatBeatsACeilingHasItMeasuredAgain) {
  CeilingWatch watch;
  Machine machine = machine_at(40e9, true);
  int measured = 0;
  const auto remeasure = [&] { return ++measured, again(80e9, true); };
  Evidence fine = moved(26000, 40e9);  // 96 %
  EXPECT_FALSE(check_ceilings(remeasure, &watch, machine.ceilings, &machine, &fine));
  EXPECT_EQ(measured, 0);
  Evidence beats = moved(20000, 40e9);  // 125 %
  EXPECT_TRUE(check_ceilings(remeasure, &watch, machine.ceilings, &machine, &beats));
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(machine.ceilings.copy_bytes_per_s, 80e9);
  EXPECT_EQ(beats.get("ceiling.copy_bandwidth"), 80e9);
  EXPECT_NEAR(*beats.get("roofline.memory_floor"), 12500, 1e-6);
}

TEST(CeilingWatch, WhatANewMeasurementDoesNotExplainIsNoReasonTwice) {
  CeilingWatch watch;
  Machine machine = machine_at(40e9, true);
  int measured = 0;
  const auto remeasure = [&] { return ++measured, again(40e9, true); };
  for (int i = 0; i < 10; ++i) {
    Evidence beats = moved(20000 + i, 40e9);
    EXPECT_FALSE(check_ceilings(remeasure, &watch, machine.ceilings, &machine, &beats));
  }
  EXPECT_EQ(measured, 1);
  for (int i = 1; i < 10; ++i) {  // each much faster than the one before
    Evidence beats = moved(20000.0 / (1 + i), 40e9);
    check_ceilings(remeasure, &watch, machine.ceilings, &machine, &beats);
  }
  EXPECT_EQ(measured, CeilingWatch::kMost);
}

TEST(CeilingWatch, NearACeilingOfABusyMachineItIsMeasuredFirst) {
  CeilingWatch watch;
  Machine machine = machine_at(40e9, false);
  int measured = 0;
  const auto remeasure = [&] { return ++measured, again(40e9, true); };
  Evidence far = moved(50000, 40e9);
  EXPECT_FALSE(check_ceilings(remeasure, &watch, machine.ceilings, &machine, &far));
  EXPECT_EQ(measured, 0);
  Evidence near = moved(26000, 40e9);
  EXPECT_TRUE(check_ceilings(remeasure, &watch, machine.ceilings, &machine, &near))
      << "they are undisturbed now";
  EXPECT_TRUE(machine.ceilings.quiet);
}

TEST(CeilingWatch, AFailedMeasurementChangesNothing) {
  CeilingWatch watch;
  Machine machine = machine_at(40e9, true);
  const auto remeasure = []() -> Result<std::optional<Ceilings>> {
    return fail(ErrorKind::kEnvironment, "no memory", "free some");
  };
  Evidence beats = moved(20000, 40e9);
  EXPECT_FALSE(check_ceilings(remeasure, &watch, machine.ceilings, &machine, &beats));
  EXPECT_EQ(machine.ceilings.copy_bytes_per_s, 40e9);
  EXPECT_FALSE(check_ceilings({}, &watch, machine.ceilings, &machine, &beats));
}

}  // namespace
}  // namespace kernelpro
