// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_watch.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "machine/driver/nvml.h"

namespace kernelpro {
namespace {

GpuState busy_state() {
  GpuState state;
  state.sm_mhz = 1980;
  state.memory_mhz = 3201;
  state.max_sm_mhz = 1980;
  return state;
}

TEST(GpuWatch, NothingToSay) { EXPECT_TRUE(watch_notes(busy_state(), busy_state()).empty()); }

TEST(GpuWatch, ThrottlingIsNamed) {
  GpuState after = busy_state();
  after.throttle_reasons = 0x4 | 0x40;
  const auto notes = watch_notes(busy_state(), after);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "the GPU was throttled (power cap, hardware thermal slowdown)");
  // Idle and user-set clocks are not throttling.
  after.throttle_reasons = 0x1 | 0x2;
  EXPECT_TRUE(watch_notes(busy_state(), after).empty());
}

TEST(GpuWatch, OtherProcessesAreCountedOnce) {
  GpuState before = busy_state(), after = busy_state();
  before.foreign_pids = {17};
  after.foreign_pids = {17};
  EXPECT_EQ(watch_notes(before, after).at(0), "1 other process used the GPU (pid 17)");
  after.foreign_pids = {4, 17, 5, 6, 7, 8};
  EXPECT_EQ(watch_notes(before, after).at(0),
            "6 other processes used the GPU (pid 4, 5, 6, 7, ...)");
}

TEST(GpuWatch, AFallingClockIsNoticedUnlessTheGpuWasIdle) {
  GpuState after = busy_state();
  after.sm_mhz = 1700;
  const auto notes = watch_notes(busy_state(), after);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "the SM clock fell from 1980 to 1700 MHz");
  after.sm_mhz = 1965;  // a step of the governor
  EXPECT_TRUE(watch_notes(busy_state(), after).empty());
  after.sm_mhz = 345;
  after.throttle_reasons = 0x1;
  EXPECT_TRUE(watch_notes(busy_state(), after).empty());
  GpuState unknown = busy_state();
  unknown.sm_mhz = unknown.memory_mhz = 0;
  EXPECT_TRUE(watch_notes(busy_state(), unknown).empty());
}

TEST(GpuWatch, OneNameNeedsNoNvmlAndSeveralAreLookedUp) {
  EXPECT_TRUE(choose_gpus({})->empty());
  EXPECT_EQ(*choose_gpus({"3"}), (std::vector<std::string>{"3"}));
  const auto several = choose_gpus({"0,0"});
  ASSERT_FALSE(several);  // named twice, or no NVML
  EXPECT_FALSE(several.error().next.empty());
}

TEST(GpuWatch, WithoutNvmlItSaysHowToGetIt) {
  if (nvml()) GTEST_SKIP() << "NVML is here";
  const auto state = gpu_state("");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(state.error().message, "NVML")) << state.error().message;
  EXPECT_FALSE(state.error().next.empty());
}

TEST(GpuWatch, ReadsTheFirstGpu) {
  const auto gpus = list_gpus();
  if (!gpus || gpus->empty()) GTEST_SKIP() << "no NVML or no GPU";
  const GpuName& first = gpus->front();
  EXPECT_TRUE(first.uuid.starts_with("GPU-")) << first.uuid;
  EXPECT_EQ(*gpu_uuid(std::to_string(first.index)), first.uuid);
  EXPECT_EQ(*gpu_uuid(first.uuid.substr(0, 12)), first.uuid);
  EXPECT_FALSE(gpu_uuid("GPU-no-such"));
  EXPECT_FALSE(gpu_uuid("999"));
  for (const std::string& file : device_files_of_others(first.uuid)) {
    EXPECT_TRUE(file.starts_with("/dev/nvidia")) << file;
  }
  EXPECT_TRUE(device_files_of_others("GPU-no-such").empty());
  const auto state = gpu_state(first.uuid);
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_GT(state->max_sm_mhz, 100u);
  const auto settings = gpu_settings("");
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_GT(settings->total_bytes, 1u << 30);
  EXPECT_FALSE(settings->driver.empty());
}

}  // namespace
}  // namespace kernelpro
