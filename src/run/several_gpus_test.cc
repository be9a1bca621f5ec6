// SPDX-License-Identifier: Apache-2.0
// A run on several GPUs over fake evaluators. Where a test depends on concurrency, the evaluations
// wait for one another (run/testing/meeting.h).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/store/store.h"
#include "run/testing/meeting.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_target;
using testing::fake_task;
using testing::FakeSettings;
using testing::Meeting;
using testing::smooth_landscape;

Task gpu_task() {
  Task task = fake_task();
  task.kernel_cu = task.kernel_cpp;
  task.reference_cu = task.reference_cpp;
  return task;
}

struct SeveralGpus : ::testing::Test {
  TempDir dir;
  FakeSettings fake;
  std::vector<std::string> notes;
  Observer observer = [this](const Progress& p) {
    if (p.event == Event::kNote) notes.push_back(p.detail);
  };
  void SetUp() override {
    clear_stop();
    fake.landscape = smooth_landscape;
  }

  RunSettings settings(const std::string& name, std::vector<std::string> gpus) const {
    RunSettings s;
    s.directory = join(dir.path(), name);
    s.target = TargetKind::kCuda;
    s.max_evaluations = 40;
    s.near_ceiling = 0;
    if (!gpus.empty()) s.gpu = gpus.front();
    s.gpus = std::move(gpus);
    return s;
  }

  // Candidates in the order in which the run took their results.
  static std::vector<std::string> course(const RunSettings& s) {
    const auto store = Store::open(s.directory, Store::Mode::kRead);
    EXPECT_TRUE(store) << store.error().text();
    std::map<std::int64_t, std::string> by_order;
    const auto all_stored = (*store)->candidates();
    for (const StoredCandidate& each : *all_stored) {
      if (each.evaluated) by_order[each.order] = knobs_to_text(each.known.candidate.knobs);
    }
    std::vector<std::string> all;
    for (const auto& [order, text] : by_order) all.push_back(text);
    return all;
  }
};

TEST_F(SeveralGpus, DecideTheSameHoweverLongEachTakes) {
  std::vector<std::vector<std::string>> courses;
  for (int round = 0; round < 3; ++round) {
    std::atomic<unsigned> calls{static_cast<unsigned>(round) * 7919};
    // Only shuffles the order in which they end; no expectation depends on the times.
    fake.before_evaluate = [&] { ::usleep((calls++ * 7919) % 9000); };
    const RunSettings s = settings("run" + std::to_string(round), {"0", "1", "2"});
    const auto result = optimize_with(fake_station(fake), gpu_task(), s, observer);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_EQ(result->evaluations, 40);
    EXPECT_GT(result->speedup, 5);
    courses.push_back(course(s));
  }
  EXPECT_EQ(courses[0], courses[1]);
  EXPECT_EQ(courses[0], courses[2]);
  EXPECT_TRUE(notes.empty()) << notes.front();
}

TEST_F(SeveralGpus, MeasureSideBySide) {
  Meeting meeting(4, 8);
  std::mutex mutex;
  int at_once = 0, most = 0;
  fake.before_evaluate = [&] {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      most = std::max(most, ++at_once);
    }
    meeting.arrive();
    const double begin = real_clock().now_s();
    while (real_clock().now_s() - begin < 0.001) {
    }
    const std::lock_guard<std::mutex> lock(mutex);
    --at_once;
  };
  const RunSettings s = settings("run", {"0", "1", "2", "3"});
  const auto result = optimize_with(fake_station(fake), gpu_task(), s, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(meeting.held(), 8) << "times that all four measured at once";
  EXPECT_EQ(most, 4);
  EXPECT_GE(result->gpu_use.measuring_s, 40 * 0.001);
  EXPECT_GT(result->gpu_use.together_s(), result->gpu_use.measuring_s);
}

TEST(GpuUse, IsToldInShares) {
  EXPECT_EQ(gpu_use_text({}), "");
  GpuUse use;
  use.measuring_s = 6;
  EXPECT_EQ(gpu_use_text(use), "measuring 100 % of the time");
  use.building_s = 3;
  use.deciding_s = 1;
  use.writing_s = 0.01;
  EXPECT_EQ(gpu_use_text(use),
            "measuring 60 % of the time, waiting for compilers 30 %, for the loop 10 %");
}

// Whichever it is: the winner is confirmed on one that is left.
TEST_F(SeveralGpus, OneThatVanishesLeavesItsWorkToTheOthers) {
  for (const std::string gone : {"1", "0"}) {
    SCOPED_TRACE(gone);
    notes.clear();
    Meeting meeting(2, 4);  // so that each GPU has four evaluations, and the first the start, too
    fake.before_evaluate = [&] { meeting.arrive(); };
    const int last = gone == "0" ? 5 : 4;
    std::atomic<int> calls{0};
    fake.fault = [&](const std::string& gpu) -> Result<void> {
      if (gpu != gone || ++calls < last) return {};
      return fail(ErrorKind::kEnvironment, "the GPU has fallen off the bus", "look at dmesg");
    };
    const RunSettings s = settings("run" + gone, {"0", "1"});
    const auto result = optimize_with(fake_station(fake), gpu_task(), s, observer);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_EQ(meeting.held(), 4);
    EXPECT_EQ(result->evaluations, 40);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_TRUE(contains(notes[0],
                         "GPU " + gone + " is given up, 1 is left: the GPU has fallen off the bus"))
        << notes[0];
    EXPECT_EQ(course(s).size(), 40u);
    EXPECT_GT(result->best, 0);
  }
}

TEST_F(SeveralGpus, ACandidateThatTakesDownTwoEndsTheRunAndNothingIsLost) {
  std::mutex mutex;
  int calls = 0;
  bool faulty = true;
  fake.fault = [&](const std::string&) -> Result<void> {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!faulty || ++calls < 10) return {};
    return fail(ErrorKind::kEnvironment, "no answer from the GPU", "reset it");
  };
  const RunSettings s = settings("run", {"0", "1", "2"});
  const auto result = optimize_with(fake_station(fake), gpu_task(), s, observer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kEnvironment);
  faulty = false;
  const auto again = resume_with(fake_station(fake), s.directory, nullptr, observer);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->evaluations, 40);
}

TEST_F(SeveralGpus, OneThatVanishesWhileTheRunIsToldToEnd) {
  Meeting meeting(3, 4);  // so that each GPU has four evaluations
  fake.before_evaluate = [&] { meeting.arrive(); };
  std::atomic<int> calls{0};
  fake.fault = [&](const std::string& gpu) -> Result<void> {
    if (gpu != "1" || ++calls < 4) return {};
    request_stop();
    return fail(ErrorKind::kEnvironment, "the GPU has fallen off the bus", "look at dmesg");
  };
  const RunSettings s = settings("run", {"0", "1", "2"});
  const auto first = optimize_with(fake_station(fake), gpu_task(), s, observer);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->stopped_by, "interrupted");
  EXPECT_EQ(course(s).size(), static_cast<std::size_t>(first->evaluations));
  clear_stop();
  fake.fault = nullptr;
  const auto second = resume_with(fake_station(fake), s.directory, nullptr, observer);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->evaluations, 40);
}

TEST_F(SeveralGpus, OneThatCannotBeHadIsLeftOut) {
  const TargetMaker all = fake_target(fake);
  const TargetMaker maker = [&](const Task& task, const StationSettings& s) -> Result<Target> {
    if (s.gpu == "1") return fail(ErrorKind::kBadInput, "there is no GPU 1", "");
    return all(task, s);
  };
  const auto result =
      optimize_with(local_stations(maker), gpu_task(), settings("run", {"0", "1"}), observer);
  ASSERT_TRUE(result) << result.error().text();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "GPU 1 is left out: there is no GPU 1");
}

TEST_F(SeveralGpus, InterruptedItGoesOn) {
  Meeting meeting(3, 5);
  std::atomic<int> calls{0};
  fake.before_evaluate = [&] {
    meeting.arrive();
    if (++calls == 15) request_stop();  // in the fifth meeting
  };
  const RunSettings s = settings("run", {"0", "1", "2"});
  const auto first = optimize_with(fake_station(fake), gpu_task(), s, observer);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->stopped_by, "interrupted");
  EXPECT_GE(first->evaluations, 15) << "what was under way is kept";
  clear_stop();
  const auto second = resume_with(fake_station(fake), s.directory, nullptr, observer);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->evaluations, 40);
}

}  // namespace
}  // namespace kernelpro
