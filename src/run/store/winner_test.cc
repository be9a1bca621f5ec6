// SPDX-License-Identifier: Apache-2.0
#include "run/store/winner.h"

#include <gtest/gtest.h>

#include "core/evaluation/label.h"
#include "run/store/settings.h"

namespace kernelpro {
namespace {

// `ratio` versus the candidate before it; `us` is the raw time.
StoredCandidate timed(std::int64_t id, double us, const StoredCandidate* incumbent, double ratio) {
  StoredCandidate stored;
  stored.evaluated = true;
  stored.order = id;
  stored.known.id = id;
  stored.known.candidate.source = std::to_string(id);
  Correct correct;
  correct.timings.push_back({"only", us, us, us, 9, ""});
  if (incumbent != nullptr) {
    correct.versus = Correct::Versus{content_hash(incumbent->known), ratio, ratio, ratio};
  }
  stored.known.evaluation.outcome = correct;
  return stored;
}

struct RecordedRun {
  std::vector<StoredCandidate> all;
  RecordedRun() {
    all.push_back(timed(1, 100, nullptr, 1));
    all.push_back(timed(2, 50, &all[0], 2));
    all.push_back(timed(3, 45, &all[1], 0.9));  // the machine got faster, not the kernel
  }
};

TEST(Winner, ComparableTimesDecideAndNotTheClock) {
  const RecordedRun run;
  const Winner winner = winner_of(RankedRun({}, run.all), nullptr);
  ASSERT_NE(winner.candidate, nullptr);
  EXPECT_EQ(winner.candidate->known.id, 2);
  EXPECT_FALSE(winner.confirmed);
}

// What the loop took for a tie is no winner, however the report is asked.
TEST(Winner, ATieDoesNotReplaceTheBest) {
  RecordedRun run;
  run.all.push_back(timed(4, 50, &run.all[1], 1.004));
  const RankedRun ranked({}, run.all);
  EXPECT_EQ(ranked.best()->known.id, 2);
  EXPECT_EQ(winner_of(ranked, nullptr).candidate->known.id, 2);
  EXPECT_EQ(ranked.start()->known.id, 1);
}

TEST(Winner, TheRunsObjectiveDecides) {
  RecordedRun run;
  run.all.resize(2);
  for (StoredCandidate& each : run.all) {
    auto& correct = std::get<Correct>(each.known.evaluation.outcome);
    correct.energy.emplace().versus = Energy::Versus{0.8, 0.79, 0.81};  // the faster one needs more
  }
  EXPECT_EQ(winner_of(RankedRun({}, run.all), nullptr).candidate->known.id, 2);
  RunSettings settings;
  settings.objective = kLeastEnergy;
  RunHeader header;
  header.settings_json = settings_to_json(settings);
  EXPECT_EQ(winner_of(RankedRun(header, run.all), nullptr).candidate->known.id, 1);
}

TEST(Winner, SpeedUpsAreOverTheFirstCorrectCandidate) {
  RecordedRun run;
  run.all[0].known.evaluation.outcome = WrongResult();
  const RankedRun ranked({}, run.all);
  EXPECT_EQ(ranked.start()->known.id, 1);
  EXPECT_EQ(ranked.baseline()->known.id, 2);
  EXPECT_FALSE(ranked.ranking.speedup_of(0));
  EXPECT_NEAR(ranked.ranking.speedup_of(2)->ratio, 0.9, 1e-12);
  EXPECT_EQ(RankedRun({}, {}).baseline(), nullptr);
}

TEST(Winner, WhatWasConfirmedWins) {
  const RecordedRun run;
  StoredConfirmation confirmation;
  confirmation.best = 1;
  const Winner winner = winner_of(RankedRun({}, run.all), &confirmation);
  ASSERT_NE(winner.candidate, nullptr);
  EXPECT_EQ(winner.candidate->known.id, 1);
  EXPECT_TRUE(winner.confirmed);
}

// Two timed cases: the diagnosis is of one of them, the score the mean of both.
TEST(Winner, ItsShareOfTheCeilingIsThatOfItsConfirmation) {
  StoredCandidate stored = timed(1, 100, nullptr, 1);
  auto& timings = std::get<Correct>(stored.known.evaluation.outcome).timings;
  timings.push_back({"other", 400, 400, 400, 9, ""});
  stored.known.diagnosis.floor_us = 320;  // of the longer one
  stored.known.diagnosis.fraction_of_ceiling = 0.8;
  Evaluation confirmed = stored.known.evaluation;
  EXPECT_NEAR(confirmed_fraction(stored.known, confirmed), 0.8, 1e-12);
  for (Timing& timing : std::get<Correct>(confirmed.outcome).timings) timing.median_us *= 2;
  EXPECT_NEAR(confirmed_fraction(stored.known, confirmed), 0.4, 1e-12);
  EXPECT_DOUBLE_EQ(confirmed_fraction(stored.known, Evaluation()), 0.8) << "nothing is known";
}

TEST(Winner, OnlyTheEligible) {
  RecordedRun run;
  StoredConfirmation confirmation;
  confirmation.best = 2;
  const auto not_two = [](const StoredCandidate& each) { return each.known.id != 2; };
  const Winner winner = winner_of(RankedRun({}, run.all), &confirmation, not_two);
  ASSERT_NE(winner.candidate, nullptr);
  EXPECT_EQ(winner.candidate->known.id, 3) << "its time rests on a candidate that is not eligible";
  EXPECT_FALSE(winner.confirmed);
  run.all[1].known.evaluation.outcome = WrongResult();
  run.all[2].evaluated = false;
  EXPECT_EQ(winner_of(RankedRun({}, run.all), nullptr, not_two).candidate->known.id, 1);
  EXPECT_EQ(winner_of(RankedRun({}, {}), nullptr).candidate, nullptr);
}

TEST(Winner, AHostFormNeverOutranksAPlan) {
  RecordedRun run;
  run.all.push_back(timed(4, 10, &run.all[1], 5));
  std::get<Correct>(run.all[3].known.evaluation.outcome).labels = {
      std::string(label_name(Label::kHostForm))};
  EXPECT_EQ(winner_of(RankedRun({}, run.all), nullptr).candidate->known.id, 2)
      << "five times slower, but a plan";
  for (std::size_t i = 0; i < 3; ++i) {
    std::get<Correct>(run.all[i].known.evaluation.outcome).labels = {
        std::string(label_name(Label::kHostForm))};
  }
  EXPECT_EQ(winner_of(RankedRun({}, run.all), nullptr).candidate->known.id, 4)
      << "among host forms time decides";
}

}  // namespace
}  // namespace kernelpro
