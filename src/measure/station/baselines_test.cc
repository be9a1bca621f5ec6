// SPDX-License-Identifier: Apache-2.0
#include "measure/station/baselines.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "base/text.h"
#include "measure/station/local.h"
#include "task/reference/python.h"

namespace kernelpro {
namespace {

constexpr const char* kRelu = R"(
import torch
N = 65536
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(N)]
def get_init_inputs():
    return []
)";

Task task_of(const std::string& source) {
  Task task;
  task.name = "relu";
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                  {"out", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
  Case c;
  c.name = "full";
  c.dims = {{"N", 4096}};
  c.timed = true;
  c.shapes = {{4096}, {4096}};
  task.cases = {c};
  task.module = Module{"relu.py", source, ""};
  return task;
}

// Each test has its own cache.
class BaselineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_python("")) GTEST_SKIP() << "PyTorch is not installed";
    const char* old = std::getenv("KERNELPRO_CACHE");
    old_ = old == nullptr ? "" : old;
    ::setenv("KERNELPRO_CACHE", folder_.path().c_str(), 1);
    place_.target = TargetKind::kCpu;
    order_.seconds = 0.05;
  }
  void TearDown() override {
    if (old_.empty()) {
      ::unsetenv("KERNELPRO_CACHE");
    } else {
      ::setenv("KERNELPRO_CACHE", old_.c_str(), 1);
    }
  }
  Result<std::vector<Baseline>> timed(const Task& task) const {
    return time_baselines(task, task.cases[0], order_, place_);
  }
  TempDir folder_;
  std::string old_;
  BaselineOrder order_;
  BaselinePlace place_;
};

TEST_F(BaselineTest, EagerIsTimedOnTheCpuAndRemembered) {
  const Task task = task_of(kRelu);
  const auto first = timed(task);
  ASSERT_TRUE(first) << first.error().text();
  ASSERT_EQ(first->size(), 1u);
  const Baseline& eager = (*first)[0];
  EXPECT_EQ(eager.name, "eager");
  EXPECT_EQ(eager.error, "");
  EXPECT_GE(eager.timing.samples, 10);
  EXPECT_GT(eager.timing.median_us, 0);
  EXPECT_LE(eager.timing.low_us, eager.timing.median_us);
  EXPECT_GE(eager.timing.high_us, eager.timing.median_us);

  const auto again = timed(task);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[0].timing.median_us, eager.timing.median_us) << "it was timed again";
  place_.machine = "another driver";
  const auto other = timed(task);
  ASSERT_TRUE(other);
  EXPECT_NE((*other)[0].timing.median_us, eager.timing.median_us) << "of another machine";
}

// Also in a process's first measurement, and whatever the file switches on.
TEST_F(BaselineTest, ArithmeticIsThatOfTheContract) {
  const Task task = task_of("import torch\ntorch.backends.cudnn.allow_tf32 = True\n" +
                            replace_all(kRelu, "        return torch.relu(x)",
                                        "        assert not torch.backends.cudnn.allow_tf32\n"
                                        "        return torch.relu(x)"));
  const auto measured = timed(task);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_EQ((*measured)[0].error, "");
  EXPECT_GT((*measured)[0].timing.median_us, 0);
}

TEST_F(BaselineTest, WhatFailsSaysWhy) {
  const Task task = task_of(replace_all(kRelu, "return torch.relu(x)", "raise ValueError('no')"));
  const auto baselines = timed(task);
  ASSERT_TRUE(baselines) << baselines.error().text();
  EXPECT_EQ((*baselines)[0].timing.samples, 0);
  EXPECT_TRUE(contains((*baselines)[0].error, "ValueError: no")) << (*baselines)[0].error;
}

TEST_F(BaselineTest, WhatNeverReturnsIsEnded) {
  order_.timeout_s = 15;
  const Task task = task_of(replace_all(kRelu, "return torch.relu(x)", "import os; os._exit(3)"));
  const auto baselines = timed(task);
  ASSERT_TRUE(baselines) << baselines.error().text();
  EXPECT_TRUE(contains((*baselines)[0].error, "3")) << (*baselines)[0].error;
}

TEST_F(BaselineTest, NativeTasksHaveNone) {
  Task task = task_of(kRelu);
  task.module.reset();
  EXPECT_FALSE(timed(task));
}

// The whole station, as a suite opens it: without compilers, judge or reference.
TEST_F(BaselineTest, AStationWithoutCandidatesTimesTheCaseThatStandsForTheTask) {
  Task task = task_of(kRelu);
  Case small = task.cases[0];
  small.name = "small";
  small.dims = {{"N", 64}};
  small.shapes = {{64}, {64}};
  task.cases.push_back(small);  // the last timed one, and not the largest
  StationSettings settings;
  settings.candidates = false;
  const auto sent = station_settings_from_json(station_settings_to_json(settings));
  ASSERT_TRUE(sent);
  const Stations stations = local_stations()(task, *sent);
  ASSERT_TRUE(stations.front()) << stations.front().error().text();
  Station& station = **stations.front();
  EXPECT_FALSE(station.machine().name.empty());
  const auto order = baseline_order_from_json(baseline_order_to_json(order_));
  ASSERT_TRUE(order);
  const auto measured = station.baselines(*order);
  ASSERT_TRUE(measured) << measured.error().text();
  ASSERT_EQ(measured->size(), 1u);
  EXPECT_EQ((*measured)[0].error, "");
  EXPECT_EQ((*measured)[0].timing.case_name, "full");
  for (Case& c : task.cases) c.timed = false;
  const auto none = station.baselines(*order);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->empty());
}

TEST(BaselineJson, DamagedCacheIsEmpty) {
  EXPECT_TRUE(baselines_from_json("{\"baselines\":[1]}").empty());
  EXPECT_TRUE(baselines_from_json("no").empty());
  const std::vector<Baseline> one = {{"eager", {"full", 2, 1, 3, 20, "stream launch"}, ""}};
  const std::vector<Baseline> read = baselines_from_json(baselines_to_json(one));
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].timing.high_us, 3);
  EXPECT_EQ(read[0].timing.method, "stream launch");
}

}  // namespace
}  // namespace kernelpro
