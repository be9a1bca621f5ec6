// SPDX-License-Identifier: Apache-2.0
#include "run/store/ledger.h"

#include <gtest/gtest.h>

#include "core/evaluation/label.h"

namespace kernelpro {
namespace {

Known timed(std::int64_t id, double us, const std::string& incumbent, double ratio) {
  Known known;
  known.id = id;
  known.candidate.source = std::to_string(id);
  Correct correct;
  correct.timings.push_back({"large", us, us, us, 20, "calls in turn"});
  if (!incumbent.empty()) {
    correct.versus = Correct::Versus{incumbent, ratio, ratio - 0.01, ratio + 0.01};
  }
  known.evaluation.outcome = correct;
  return known;
}

// The machine slows down by half between evaluations; ratios measured in alternation stay right.
TEST(Ledger, DriftDoesNotMakeABest) {
  Ledger ledger;
  const Known a = timed(1, 100, "", 1);
  const std::string a_hash = a.candidate.content_hash();
  EXPECT_TRUE(ledger.record(a));
  EXPECT_FALSE(ledger.record(timed(2, 50, a_hash, 1.012))) << "the interval reaches into a tie";
  EXPECT_EQ(ledger.since_best(), 1);
  EXPECT_TRUE(ledger.record(timed(3, 160, a_hash, 1.25))) << "slower by the clock, faster in turn";
  EXPECT_NEAR(ledger.comparable_us(3), 80, 1e-9);
  EXPECT_NEAR(ledger.best_speedup().ratio, 1.25, 1e-9);
  EXPECT_EQ(ledger.best()->id, 3);
  // What prompts and the tuner compare.
  EXPECT_NEAR(comparable_us(*ledger.find(3)), 80, 1e-9);
  EXPECT_NEAR(comparable_us(*ledger.find(2)), 100 / 1.012, 1e-9);
  EXPECT_EQ(ledger.baseline()->id, 1);
}

// A writer on another thread may still read what it was given.
TEST(Ledger, WhatWasHandedOutStaysAsItIs) {
  Ledger ledger;
  ledger.record(timed(1, 100, "", 1));
  const KnownPtr before = ledger.find(1);
  const History history = ledger.history();
  Diagnosis diagnosis;
  diagnosis.fraction_of_ceiling = 0.5;
  ledger.revise(1, diagnosis);
  EXPECT_EQ(before->diagnosis.fraction_of_ceiling, 0);
  EXPECT_EQ(history[0], before);
  EXPECT_EQ(ledger.find(1)->diagnosis.fraction_of_ceiling, 0.5);
  EXPECT_EQ(ledger.best(), ledger.history()[0]);
}

// The start could not be captured; the first plan becomes the best, however slow it is.
TEST(Ledger, APlanComesBeforeAHostForm) {
  const auto host_form = [](Known known) {
    std::get<Correct>(known.evaluation.outcome).labels = {
        std::string(label_name(Label::kHostForm))};
    return known;
  };
  Ledger ledger;
  const Known a = host_form(timed(1, 100, "", 1));
  const std::string a_hash = a.candidate.content_hash();
  EXPECT_TRUE(ledger.record(a));
  EXPECT_TRUE(ledger.record(host_form(timed(2, 50, a_hash, 2))));
  EXPECT_TRUE(ledger.record(timed(3, 200, a_hash, 0.5))) << "slower, but a plan";
  const std::string plan = ledger.best()->candidate.content_hash();
  EXPECT_FALSE(ledger.record(host_form(timed(4, 10, plan, 20))));
  EXPECT_EQ(ledger.best()->id, 3);
  EXPECT_EQ(ledger.finalists().front()->id, 3);
  for (const KnownPtr& each : ledger.finalists()) EXPECT_NE(each->id, 4);
  EXPECT_TRUE(ledger.record(timed(5, 100, plan, 2)));
}

Known with_labels(Known known, std::vector<std::string> labels) {
  std::get<Correct>(known.evaluation.outcome).labels = std::move(labels);
  return known;
}

TEST(Ledger, WhatKeepsTheWholeContractComesFirst) {
  Ledger ledger;
  const Known start = timed(1, 100, "", 1);
  EXPECT_TRUE(ledger.record(start));
  const std::string hash = start.candidate.content_hash();
  const std::vector<std::string> partial = {"given-distribution-only"};
  EXPECT_FALSE(ledger.record(with_labels(timed(2, 50, hash, 2), partial)));
  EXPECT_TRUE(ledger.record(with_labels(timed(3, 80, hash, 1.25), {"precise-by-norm"})));
  EXPECT_EQ(ledger.best()->id, 3);
  for (const KnownPtr& each : ledger.finalists()) EXPECT_NE(each->id, 2);
}

// Who starts from a kernel of one distribution may go on with others of the same.
TEST(Ledger, ALabelOfTheBaselineRanksNothingBelowIt) {
  Ledger ledger;
  const std::vector<std::string> partial = {"given-distribution-only"};
  const Known start = with_labels(timed(1, 100, "", 1), partial);
  EXPECT_TRUE(ledger.record(start));
  const std::string hash = start.candidate.content_hash();
  EXPECT_FALSE(ledger.record(timed(2, 200, hash, 0.5))) << "slower, if for all values";
  EXPECT_TRUE(ledger.record(with_labels(timed(3, 50, hash, 2), partial)));
  const std::string third = ledger.best()->candidate.content_hash();
  EXPECT_FALSE(ledger.record(
      with_labels(timed(4, 25, third, 2), {"given-distribution-only", "given-parameters-only"})));
}

}  // namespace
}  // namespace kernelpro
