// SPDX-License-Identifier: Apache-2.0
// A run driven from outside, with the real store; compiling and running are faked.
#include "run/sitting.h"

#include <gtest/gtest.h>

#include "base/cancel.h"
#include "base/files.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"

namespace kernelpro {
namespace {

using testing::FakeSettings;

struct Opened {
  TempDir dir;
  int made = 0;  // targets
  std::unique_ptr<Sitting> sitting;

  explicit Opened(FakeSettings fake = {}) {
    if (!fake.landscape) fake.landscape = testing::smooth_landscape;
    RunSettings settings;
    settings.directory = join(dir.path(), "run");
    settings.proposer = "mcp";
    const TargetMaker inner = testing::fake_target(fake);
    auto opened =
        Sitting::open(testing::fake_task(), settings,
                      local_stations([this, inner](const Task& task, const StationSettings& with) {
                        ++made;
                        return inner(task, with);
                      }),
                      nullptr);
    EXPECT_TRUE(opened) << opened.error().text();
    if (opened) sitting = std::move(*opened);
  }
};

Sitting::Given given(const KnobValues& knobs, const std::string& idea = "") {
  Sitting::Given one;
  one.kernel.source = testing::fake_task().kernel_cpp;
  one.kernel.knobs = knobs;
  one.idea = idea;
  return one;
}

TEST(Sitting, StoresWhatTheLoopWouldStore) {
  Opened opened;
  Sitting& sitting = *opened.sitting;
  const auto first = sitting.evaluate(given({{"V", "8"}}, "wider"), nullptr);
  ASSERT_TRUE(first && *first) << first.error().text();
  EXPECT_EQ((*first)->row->known.id, 2);  // after the start
  EXPECT_TRUE((*first)->row->better);
  EXPECT_GT((*first)->row->speedup, 1);
  const auto again = sitting.evaluate(given({{"V", "8"}}), nullptr);
  ASSERT_TRUE(again && *again);
  EXPECT_TRUE((*again)->again);
  EXPECT_EQ((*again)->row->known.id, 2);
  const auto worse = sitting.evaluate(given({{"V", "2"}}), nullptr);
  ASSERT_TRUE(worse && *worse);
  EXPECT_FALSE((*worse)->row->better);
  EXPECT_EQ((*worse)->row->known.candidate.origin.parent, 2);  // the best by default
  EXPECT_EQ((*worse)->row->known.evaluation.correct()->versus->incumbent,
            (*first)->row->known.candidate.content_hash());
  EXPECT_EQ(sitting.best()->known.id, 2);
  EXPECT_EQ(sitting.baseline()->known.id, 1);
  Sitting::Given orphan = given({{"V", "4"}});
  orphan.parent = 99;
  EXPECT_FALSE(sitting.evaluate(orphan, nullptr));
  EXPECT_FALSE(sitting.evaluate(given({{"V", "3"}}), nullptr));  // not a value of that knob
  const auto duel = sitting.compare(*sitting.row(2), *sitting.row(3), nullptr);
  ASSERT_TRUE(duel && *duel);
  EXPECT_GT((*duel)->correct()->versus->ratio, 1);
  const auto done = sitting.finish(nullptr);
  ASSERT_TRUE(done && *done);
  EXPECT_EQ((*done)->best, 2);
  const std::string directory = sitting.directory();
  opened.sitting.reset();
  const auto store = Store::open(directory, Store::Mode::kRead);
  ASSERT_TRUE(store);
  const auto stored = (*store)->candidates();
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->size(), 3u);
  EXPECT_EQ((*stored)[1].known.candidate.origin.idea, "wider");
  EXPECT_TRUE((*stored)[2].evaluated);
  EXPECT_EQ((*(*store)->confirmation())->best, 2);
}

// Two that an evaluation could not tell apart: what a comparison finds counts.
TEST(Sitting, TheBestFollowsAComparison) {
  FakeSettings fake;
  double factor = 1;
  fake.factor = [&] { return factor; };
  Opened opened(fake);
  Sitting& sitting = *opened.sitting;
  ASSERT_TRUE(sitting.evaluate(given({{"V", "16"}}), nullptr));
  factor = 4;
  ASSERT_TRUE(sitting.evaluate(given({{"V", "8"}}), nullptr));
  const std::int64_t before = sitting.best()->known.id;
  ASSERT_NE(before, 3);
  factor = 1;
  const auto duel = sitting.compare(*sitting.row(3), *sitting.row(before), nullptr);
  ASSERT_TRUE(duel && *duel);
  ASSERT_GT((*duel)->correct()->versus->low, 1);
  EXPECT_EQ(sitting.best()->known.id, 3);
  const auto done = sitting.finish(nullptr);
  ASSERT_TRUE(done && *done);
  EXPECT_EQ((*done)->best, 3);
  ASSERT_TRUE(sitting.evaluate(given({{"V", "4"}}), nullptr));
  EXPECT_EQ(sitting.best()->known.id, 3);
}

TEST(Sitting, TheTargetStaysPrepared) {
  Opened opened;
  ASSERT_TRUE(opened.sitting->evaluate(given({{"V", "8"}}), nullptr));
  ASSERT_TRUE(opened.sitting->evaluate(given({{"V", "4"}}), nullptr));
  EXPECT_EQ(opened.made, 1);
  opened.sitting->cool();
  EXPECT_FALSE(opened.sitting->warm());
  const auto after = opened.sitting->evaluate(given({{"V", "16"}}), nullptr);
  ASSERT_TRUE(after && *after);
  EXPECT_EQ(opened.made, 2);
  EXPECT_TRUE((*after)->row->known.evaluation.correct()->versus.has_value());
}

// Clients see every candidate at the ceilings that are known by now, as the store has them.
TEST(Sitting, ABetterCeilingAppliesToWhatWasEvaluatedBefore) {
  constexpr double kFastest = 524288 / 100e-6;  // bytes/s of the best setting
  FakeSettings fake;
  fake.copy_bytes_per_s = kFastest / 4;  // measured under load
  fake.remeasure = [] {
    Machine machine;
    machine.ceilings.copy_bytes_per_s = 2 * kFastest;
    return Result<Machine>(machine);
  };
  Opened opened(fake);
  Sitting& sitting = *opened.sitting;
  ASSERT_TRUE(sitting.evaluate(given({{"V", "2"}}), nullptr));
  const double before = sitting.row(1)->known.diagnosis.fraction_of_ceiling;
  EXPECT_GT(before, 0);
  const auto best = sitting.evaluate(
      given({{"V", "8"}, {"T", "4"}, {"C", "64"}, {"S", "1"}, {"U", "2"}}), nullptr);
  ASSERT_TRUE(best && *best);
  EXPECT_NEAR((*best)->row->known.diagnosis.fraction_of_ceiling, 0.5, 1e-6);
  EXPECT_NEAR(sitting.row(1)->known.diagnosis.fraction_of_ceiling, before / 8, 1e-6);
  const auto store = Store::open(sitting.directory(), Store::Mode::kRead);
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->candidate(1, false)->known.diagnosis.fraction_of_ceiling,
            sitting.row(1)->known.diagnosis.fraction_of_ceiling);
}

TEST(Sitting, WhatIsCancelledHasNoResultAndMayBeAskedAgain) {
  std::atomic<bool> flag{false};
  std::atomic<bool> armed{false};
  FakeSettings fake;
  fake.before_evaluate = [&] {
    if (armed) flag = true;
  };
  Opened opened(fake);
  ASSERT_TRUE(opened.sitting->evaluate(given({{"V", "2"}}), nullptr));
  armed = true;
  {
    const CancelScope scope(&flag);
    const auto cut = opened.sitting->evaluate(given({{"V", "8"}}), nullptr);
    ASSERT_TRUE(cut) << cut.error().text();
    EXPECT_FALSE(*cut);
  }
  EXPECT_EQ(opened.sitting->rows().size(), 2u);
  armed = false;
  const auto again = opened.sitting->evaluate(given({{"V", "8"}}), nullptr);
  ASSERT_TRUE(again && *again);
  EXPECT_FALSE((*again)->again);
  EXPECT_EQ((*again)->row->known.id, 3);
  EXPECT_EQ(opened.sitting->best()->known.id, 3);
}

TEST(Sitting, NothingCorrectIsNothingToFinish) {
  FakeSettings fake;
  fake.landscape = [](const KnobValues&) { return -1.0; };
  Opened opened(fake);
  EXPECT_FALSE(opened.sitting->finish(nullptr));
  const auto wrong = opened.sitting->evaluate(given({{"V", "8"}}), nullptr);
  ASSERT_TRUE(wrong && *wrong);
  EXPECT_EQ((*wrong)->row->known.candidate.origin.parent, 1);
  EXPECT_EQ(opened.sitting->best(), nullptr);
  EXPECT_FALSE(opened.sitting->finish(nullptr));
}

}  // namespace
}  // namespace kernelpro
