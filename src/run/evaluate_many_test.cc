// SPDX-License-Identifier: Apache-2.0
// Several kernels at once over fake compilers and evaluators; a PyTorch file over a real reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/evaluate_one.h"
#include "task/load/start.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;

KernelFile kernel_with(const char* v) {
  KernelFile kernel;
  kernel.path = std::string("v") + v + ".cpp";
  kernel.source = fake_task().kernel_cpp;
  kernel.knobs = {{"V", v}};
  return kernel;
}

FakeSettings by_v() {
  FakeSettings fake;
  // 16 does not compile, 8 is wrong.
  fake.landscape = [](const KnobValues& k) {
    return knob(k, "V") == 16 ? 0.0 : knob(k, "V") == 8 ? -1.0 : 100 / knob(k, "V");
  };
  return fake;
}

TEST(EvaluateMany, VerdictsInOrderWhateverTheyAre) {
  std::vector<std::size_t> seen;
  const auto results = evaluate_many(
      fake_task(), {kernel_with("2"), kernel_with("16"), kernel_with("8"), kernel_with("4")}, {},
      [&](std::size_t i, const EvaluateOneResult&) { seen.push_back(i); }, fake_station(by_v()));
  ASSERT_TRUE(results) << results.error().text();
  ASSERT_EQ(results->size(), 4u);
  EXPECT_EQ(outcome_name((*results)[0].evaluation.outcome), "correct");
  EXPECT_EQ(outcome_name((*results)[1].evaluation.outcome), "compile-error");
  EXPECT_EQ(outcome_name((*results)[2].evaluation.outcome), "wrong-result");
  EXPECT_DOUBLE_EQ(score_us((*results)[3].evaluation), 25);
  EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 3}));
  // Versus the starting kernel, V = 1: 100 us.
  ASSERT_TRUE((*results)[3].evaluation.correct()->versus);
  EXPECT_DOUBLE_EQ((*results)[3].evaluation.correct()->versus->ratio, 4);
  EXPECT_TRUE((*results)[0].phases_ms.contains("prepare"));
}

TEST(EvaluateMany, AgainstAnother) {
  EvaluateManySettings settings;
  settings.against = kernel_with("2");
  const auto results = evaluate_many(fake_task(), {kernel_with("4"), kernel_with("2")}, settings,
                                     nullptr, fake_station(by_v()));
  ASSERT_TRUE(results) << results.error().text();
  EXPECT_DOUBLE_EQ((*results)[0].evaluation.correct()->versus->ratio, 2);
  EXPECT_FALSE((*results)[1].evaluation.correct()->versus) << "it is the same kernel";
}

// PyTorch is timed once, before anything else runs, on the case that stands for the task.
TEST(EvaluateMany, BaselinesAreMeasuredFirst) {
  FakeSettings fake = by_v();
  std::vector<std::string> events;
  fake.before_evaluate = [&] { events.emplace_back("evaluate"); };
  const TargetMaker maker = [&](const Task& task, const StationSettings& settings) {
    auto target = testing::fake_target(fake)(task, settings);
    target->baselines = [&](const Task&, const Case& c, const BaselineOrder& order) {
      events.push_back("baselines in " + c.name);
      EXPECT_FALSE(order.compiled);
      const Baseline eager{"eager", {c.name, 300, 299, 301, 20, "calls"}, ""};
      return Result<std::vector<Baseline>>(std::vector<Baseline>{eager});
    };
    return target;
  };
  EvaluateManySettings settings;
  settings.baselines = BaselineOrder{.compiled = false};
  const Task task = fake_task();
  const auto results = evaluate_many(task, {kernel_with("2"), kernel_with("4")}, settings, nullptr,
                                     local_stations(maker));
  ASSERT_TRUE(results) << results.error().text();
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events[0], "baselines in " + largest_timed(task, TargetKind::kCpu)->name);
  EXPECT_EQ(std::count(events.begin(), events.end(), events[0]), 1);
  for (const EvaluateOneResult& result : *results) {
    ASSERT_EQ(result.baselines.size(), 1u);
    EXPECT_EQ(result.baselines[0].timing.median_us, 300);
  }
}

// Then all kernels of a command are shown at the same ceilings.
TEST(EvaluateMany, ABetterCeilingAppliesToKernelsThatWereJudgedBefore) {
  constexpr double kBytes = 524288;  // that the largest case moves
  FakeSettings fake = by_v();
  fake.copy_bytes_per_s = 1e10;  // measured under load: V = 4 moves the bytes in 25 us
  fake.remeasure = [] {
    Machine machine;
    machine.ceilings.copy_bytes_per_s = 4e10;
    return Result<Machine>(machine);
  };
  std::vector<std::pair<std::size_t, double>> shown;  // which, and at what share of the ceiling
  const auto results = evaluate_many(
      fake_task(), {kernel_with("1"), kernel_with("16"), kernel_with("4")}, {},
      [&](std::size_t i, const EvaluateOneResult& result) {
        shown.emplace_back(i, result.diagnosis.fraction_of_ceiling);
      },
      fake_station(fake));
  ASSERT_TRUE(results) << results.error().text();
  ASSERT_EQ(shown.size(), 4u);
  EXPECT_EQ(shown[0].first, 0u);
  EXPECT_NEAR(shown[0].second, kBytes / 100e-6 / 1e10, 1e-6);
  EXPECT_EQ(shown[1].first, 1u);
  EXPECT_EQ(shown[2].first, 2u);
  EXPECT_NEAR(shown[2].second, kBytes / 25e-6 / 4e10, 1e-6);
  EXPECT_EQ(shown[3].first, 0u) << "shown again; the one that does not compile has no ceiling";
  EXPECT_NEAR(shown[3].second, kBytes / 100e-6 / 4e10, 1e-6);
  for (const EvaluateOneResult& result : *results) {
    EXPECT_EQ(result.machine.ceilings.copy_bytes_per_s, 4e10);
  }
  EXPECT_EQ((*results)[0].evidence.get("ceiling.copy_bandwidth"), 4e10);
  EXPECT_NEAR((*results)[0].diagnosis.fraction_of_ceiling, kBytes / 100e-6 / 4e10, 1e-6);
}

TEST(EvaluateMany, FaultyKnobsAreToldBeforeAnythingRuns) {
  int runs = 0;
  FakeSettings fake = by_v();
  fake.before_evaluate = [&] { ++runs; };
  const auto results = evaluate_many(fake_task(), {kernel_with("2"), kernel_with("3")}, {}, nullptr,
                                     fake_station(fake));
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(results.error().message, "v3.cpp"));
  EXPECT_EQ(runs, 0);
}

// A machine fault ends it; the rest is not evaluated.
TEST(EvaluateMany, AFaultOfTheMachineEndsIt) {
  FakeSettings fake = by_v();
  const TargetMaker maker = [&](const Task&, const StationSettings&) -> Result<Target> {
    return fail(ErrorKind::kEnvironment, "no such target", "");
  };
  const auto results =
      evaluate_many(fake_task(), {kernel_with("2")}, {}, nullptr, local_stations(maker));
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().kind, ErrorKind::kEnvironment);
}

constexpr const char* kRelu = R"(import torch
ROWS = 8
COLS = 100
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(ROWS, COLS)]
def get_init_inputs():
    return []
)";

TEST(OpenTask, APyTorchFileWithOtherSizesAndRestarted) {
  const TempDir dir;
  const std::string path = join(dir.path(), "relu.py");
  ASSERT_TRUE(write_file(path, kRelu));
  OpenSettings settings;
  settings.dims = {{"COLS", 33}};
  auto opened = open_task(path, settings);
  if (!opened && opened.error().kind == ErrorKind::kEnvironment) {
    GTEST_SKIP() << opened.error().message;
  }
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_EQ(opened->task.name, "relu");
  ASSERT_TRUE(opened->task.module);
  EXPECT_EQ(shaped_tensors(opened->task, opened->task.cases.back())[0].shape,
            (std::vector<std::int64_t>{8, 33}));
  const auto start = start_candidate(opened->task, TargetKind::kCuda);
  ASSERT_TRUE(start) << start.error().text();
  EXPECT_EQ(start->language, Language::kPython);
  EXPECT_TRUE(contains(start->source, "class ModelNew(Model)"));
  // Another implementation to start from, for targets that run it.
  Task other = opened->task;
  other.other_kernels["py"] = "class ModelNew: pass\n";
  const auto given = start_candidate(other, TargetKind::kCuda);
  ASSERT_TRUE(given) << given.error().text();
  EXPECT_EQ(given->source, other.other_kernels["py"]);
  EXPECT_EQ(task_from_json(task_to_json(other))->other_kernels["py"], other.other_kernels["py"]);
  const auto refused = start_candidate(other, TargetKind::kCpu);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().next, "--target cuda"));
  // The task holds the source: its file may be deleted.
  const auto stored = task_from_json(task_to_json(opened->task));
  ASSERT_TRUE(stored);
  opened->module.reset();
  ASSERT_EQ(std::remove(path.c_str()), 0);
  const auto again = restart_module(*stored, TargetKind::kCpu, "");
  EXPECT_TRUE(again) << again.error().text();
}

TEST(OpenTask, Faults) {
  const TempDir dir;
  const std::string path = join(dir.path(), "model.py");
  ASSERT_TRUE(write_file(path, "x = 1  # TODO(kernelpro): decide\n"));
  const auto unfilled = open_task(path, {});
  ASSERT_FALSE(unfilled);
  EXPECT_TRUE(contains(unfilled.error().message, "line 1: decide")) << unfilled.error().message;
  EXPECT_FALSE(open_task(join(dir.path(), "none.py"), {}));
  OpenSettings settings;
  settings.dims = {{"N", 1}};
  const auto folder = open_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax", settings);
  ASSERT_FALSE(folder);
  EXPECT_TRUE(contains(folder.error().message, "--set"));
}

}  // namespace
}  // namespace kernelpro
