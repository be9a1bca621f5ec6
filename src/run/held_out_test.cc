// SPDX-License-Identifier: Apache-2.0
// Held-out cases: over a fake target, and with the real compiler and worker of the cpu target.
#include "run/store/held_out.h"

#include <gtest/gtest.h>

#include <map>

#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "core/testing/toy_task.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/store/store.h"
#include "task/load/loader.h"

namespace kernelpro {
namespace {

using testing::fake_target;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;
using testing::smooth_landscape;

RunSettings settings_for(const std::string& directory, int evaluations) {
  RunSettings settings;
  settings.directory = directory;
  settings.max_evaluations = evaluations;
  settings.near_ceiling = 0;
  return settings;
}

Task task_with_held_out() {
  Task task = fake_task();
  task.held_out = {Case{"tall", {{"N", 70000}}, true, {}}, Case{"odd", {{"N", 99}}, true, {}},
                   Case{"gpu", {{"N", 5}}, true, {TargetKind::kCuda}}};
  return task;
}

// Each case's target has its own landscape; `seen` records the cases.
TargetMaker by_case(const FakeSettings& all, std::map<std::string, FakeSettings> held_out,
                    std::vector<std::string>* seen) {
  return [=](const Task& task, const StationSettings& settings) -> Result<Target> {
    const std::string name = task.cases.front().name;
    seen->push_back(name);
    const auto own = held_out.find(name);
    return fake_target(own == held_out.end() ? all : own->second)(task, settings);
  };
}

struct HeldOutTest : ::testing::Test {
  TempDir dir;
  std::string run = join(dir.path(), "run");
  FakeSettings fake, tall, odd;
  std::vector<std::string> seen;
  void SetUp() override {
    clear_stop();
    fake.landscape = smooth_landscape;
    tall.landscape = [](const KnobValues& k) { return 3000 / knob(k, "V"); };
    odd = tall;
  }
  StationMaker maker() {
    return local_stations(by_case(fake, {{"tall", tall}, {"odd", odd}}, &seen));
  }
  Result<RunResult> go(int evaluations = 30) {
    return optimize_with(maker(), task_with_held_out(), settings_for(run, evaluations), nullptr);
  }
  std::vector<HeldOut> stored() const {
    const auto store = Store::open(run, Store::Mode::kRead);
    const auto confirmation = (*store)->confirmation();
    EXPECT_TRUE(confirmation && *confirmation);
    return (*confirmation)->held_out;
  }
};

TEST_F(HeldOutTest, AreMeasuredOnceAtTheEnd) {
  const auto result = go();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(seen, (std::vector<std::string>{"small", "tall", "odd"})) << "not those of the GPU";
  const std::vector<HeldOut> cases = stored();
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1].case_name, "odd");
  EXPECT_FALSE(held_out_failed(cases));
  ASSERT_TRUE(cases[0].evaluation.correct()->versus);
  const double ratio = cases[0].evaluation.correct()->versus->ratio;
  EXPECT_GT(ratio, 3.9) << "V was 1 and is 4 to 16 now";
  EXPECT_NEAR(held_out_speedup(cases), ratio, 1e-9);
  EXPECT_TRUE(
      contains(result->held_out, "held out: case tall: " + number(ratio, 3) + "x the baseline"))
      << result->held_out;
  EXPECT_TRUE(contains(result->held_out, "over all 2 (geometric mean)")) << result->held_out;
  const auto again = resume_with(maker(), run, nullptr, nullptr);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->held_out, result->held_out);
  EXPECT_EQ(seen.size(), 3u) << "nothing is measured again";
}

TEST_F(HeldOutTest, AWinnerThatFailsOneStaysTheWinnerAndIsSaidToFail) {
  odd.landscape = [](const KnobValues& k) { return knob(k, "V") > 1 ? -1.0 : 3000.0; };
  const auto result = go();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_GT(result->speedup, 4) << "the score is that of the cases that the search knew";
  EXPECT_TRUE(held_out_failed(stored()));
  EXPECT_EQ(held_out_speedup(stored()), 0);
  EXPECT_TRUE(contains(result->held_out, "case odd: FAILED: ")) << result->held_out;
  EXPECT_TRUE(contains(result->held_out, "element 3 is off")) << result->held_out;
  EXPECT_TRUE(contains(result->held_out, "search again in a new run")) << result->held_out;
  EXPECT_TRUE(contains(held_out_to_json(stored()), "\"failed\":true"));
}

TEST_F(HeldOutTest, AStartThatFailsThereIsNothingToCompareWith) {
  odd.landscape = [](const KnobValues& k) { return knob(k, "V") > 1 ? 50.0 : -1.0; };
  tall.landscape = [](const KnobValues& k) { return knob(k, "V") > 1 ? 50.0 : 0.0; };
  const auto result = go();
  ASSERT_TRUE(result) << result.error().text();
  for (const HeldOut& one : stored()) {
    ASSERT_NE(one.evaluation.correct(), nullptr) << one.case_name;
    EXPECT_FALSE(one.evaluation.correct()->versus);
    EXPECT_TRUE(contains(held_out_outcome(one), " us a call"));
  }
  EXPECT_FALSE(held_out_failed(stored()));
  EXPECT_EQ(held_out_speedup(stored()), 0);
}

TEST_F(HeldOutTest, AskedToStopMeanwhileItConfirmsLater) {
  tall.before_evaluate = request_stop;
  const auto result = go();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->stopped_by, "interrupted");
  clear_stop();
  tall.before_evaluate = nullptr;
  const auto later = resume_with(maker(), run, nullptr, nullptr);
  ASSERT_TRUE(later) << later.error().text();
  EXPECT_EQ(later->evaluations, 30);
  EXPECT_EQ(stored().size(), 2u);
}

// Correct only for the sizes of the search: WIDE = 16 skips the last few elements.
constexpr const char* kKernel =
    "// @knob WIDE 1 16\n"
    "#include \"task.h\"\n"
    "extern \"C\" void launch(const Args& a) {\n"
    "  for (int turn = 0; turn < (WIDE == 1 ? 200 : 1); ++turn) {\n"
    "    for (int i = 0; i < N / WIDE * WIDE; ++i) {\n"
    "      const_cast<volatile float*>(a.y)[i] = 2 * a.x[i];\n"
    "    }\n  }\n}\n";

TEST(HeldOut, AKernelThatIsRightOnlyForTheSizeOfTheSearchIsCaught) {
  const TempDir dir;
  const std::string folder = join(dir.path(), "task");
  ASSERT_TRUE(testing::write_toy_task(
      folder,
      {{"known", 65536, "timed"}, {"uneven", 65543, "held_out"}, {"even", 32768, "held_out"}}, 2,
      kKernel));
  const auto task = load_task(folder);
  ASSERT_TRUE(task) << task.error().text();
  RunSettings settings = settings_for(join(dir.path(), "run"), 2);
  settings.probes = false;
  const auto result = optimize_with(local_stations(), *task, settings, nullptr);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_GT(result->speedup, 2);
  const auto store = Store::open(settings.directory, Store::Mode::kRead);
  const auto confirmation = (*store)->confirmation();
  ASSERT_TRUE(confirmation && *confirmation);
  const std::vector<HeldOut>& cases = (*confirmation)->held_out;
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(outcome_name(cases[0].evaluation.outcome), "wrong-result")
      << held_out_outcome(cases[0]);
  ASSERT_NE(cases[1].evaluation.correct(), nullptr) << held_out_outcome(cases[1]);
  EXPECT_GT(cases[1].evaluation.correct()->versus->low, 2);
  EXPECT_TRUE(contains(result->held_out, "case uneven: FAILED")) << result->held_out;
}

}  // namespace
}  // namespace kernelpro
