// SPDX-License-Identifier: Apache-2.0
// What probes show of whole evaluations (testing/whole_evaluator.h).
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "measure/cuda/testing/whole_evaluator.h"

namespace kernelpro::testing {
namespace {

TEST_F(WholeEvaluator, ProbesShowWhatTheUsualInputsHide) {
  settings_.probes = true;
  task_.matmul_flops = "2*N";
  const Evaluation honest = evaluate("honest");
  ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
  EXPECT_TRUE(honest.correct()->labels.empty()) << honest.correct()->labels[0];
  // A row of a few elements tells little: a draw may hide it, and draws serve several times.
  Evaluation rounded = evaluate("two_parts");
  for (int k = 0; k < 40 && rounded.correct() != nullptr; ++k) rounded = evaluate("two_parts");
  EXPECT_EQ(outcome_name(rounded.outcome), "rejected") << said(rounded);
  EXPECT_TRUE(contains(said(rounded), "precision")) << said(rounded);
  const Evaluation skips = evaluate("skips_when_small");
  ASSERT_TRUE(skips.correct() != nullptr) << said(skips);
  EXPECT_EQ(skips.correct()->labels, std::vector<std::string>{"given-distribution-only"});
}

TEST_F(WholeEvaluator, ProbesFindFewElementsAmongMany) {
  settings_.probes = true;
  // A sample may happen to hold one of them, and draws serve several times.
  bool found = false;
  for (int k = 0; k < 40 && !found; ++k) {
    const Evaluation sampled = evaluate("trusts_a_sample");
    ASSERT_TRUE(sampled.correct() != nullptr) << said(sampled);
    found = sampled.correct()->labels == std::vector<std::string>{"given-distribution-only"};
  }
  EXPECT_TRUE(found);
}

TEST_F(WholeEvaluator, ProbesBeyondTheRangeAreTriedWithSmallerValues) {
  settings_.probes = true;
  reference_ = "huge_reference";
  for (int k = 0; k < 2; ++k) {  // levels are remembered
    const Evaluation honest = evaluate("huge");
    ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
    EXPECT_TRUE(honest.correct()->labels.empty());
    const Evaluation table = evaluate("huge_in_a_table");
    ASSERT_TRUE(table.correct() != nullptr) << said(table);
    EXPECT_EQ(table.correct()->labels, std::vector<std::string>{"given-distribution-only"});
  }
}

// Large values cost an honest kernel time where it does more than multiply: a quotient of
// exponentials, a sine.
TEST_F(WholeEvaluator, AnotherPathForOtherValuesIsToldByItsTime) {
  settings_.probes = true;
  const auto labels = [&](const char* name) {
    const Evaluation e = evaluate(name);
    EXPECT_TRUE(e.correct() != nullptr) << said(e);
    return e.correct() != nullptr ? e.correct()->labels : std::vector<std::string>();
  };
  const std::vector<std::string> depends = {"time-depends-on-values"};
  EXPECT_EQ(labels("slow_when_small"), depends);
  EXPECT_TRUE(labels("slow_when_large").empty());
  evaluator_.reset();
  task_.matmul_flops = "2*N";
  EXPECT_EQ(labels("slow_when_large"), depends);
}

TEST_F(WholeEvaluator, SizesThatNobodyTimesAreProbedToo) {
  settings_.probes = true;
  Case other = task_.cases[0];
  other.name = "other";
  other.timed = false;
  task_.cases.push_back(other);
  Subject subject{"careless elsewhere", {binary("honest"), binary("skips_when_small")}};
  subject.binaries[1].case_name = "other";
  const Evaluation careless = evaluate(subject, nullptr);
  ASSERT_TRUE(careless.correct() != nullptr) << said(careless);
  EXPECT_EQ(careless.correct()->labels, std::vector<std::string>{"given-distribution-only"});
  subject.binaries[1] = subject.binaries[0];
  subject.binaries[1].case_name = "other";
  const Evaluation honest = evaluate(subject, nullptr);
  ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
  EXPECT_TRUE(honest.correct()->labels.empty());
}

TEST_F(WholeEvaluator, AProbeIsNotAlwaysTheFirstCall) {
  settings_.probes = true;
  const Evaluation careful = evaluate("careful_at_first");
  ASSERT_TRUE(careful.correct() != nullptr) << said(careful);
  EXPECT_EQ(careful.correct()->labels, std::vector<std::string>{"given-distribution-only"});
}

// Probes replace calls drawn at random, so that now and then (in 1 of 70 evaluations) none falls
// into the twenty that the kernel takes for timed ones.
TEST_F(WholeEvaluator, CountingCallsDoesNotTellWhichAreOnlyTimed) {
  settings_.probes = true;
  for (const char* against : {"", "honest"}) {
    constexpr int kTries = 3;
    std::vector<std::string> labels;
    for (int i = 0; i < kTries && labels.empty(); ++i) {
      const Evaluation careless = evaluate("careless_when_timed", against);
      ASSERT_TRUE(careless.correct() != nullptr) << said(careless);
      labels = careless.correct()->labels;
    }
    EXPECT_EQ(labels, std::vector<std::string>{"given-distribution-only"});
  }
}

TEST_F(WholeEvaluator, AKernelThatAProbeEndsIsStillTimed) {
  settings_.probes = true;
  for (const char* against : {"", "honest"}) {
    const Evaluation strays = evaluate("strays_when_large", against);
    ASSERT_TRUE(strays.correct() != nullptr) << said(strays);
    EXPECT_EQ(strays.correct()->labels, std::vector<std::string>{"given-distribution-only"});
    ASSERT_EQ(strays.correct()->timings.size(), 1u);
    EXPECT_GE(strays.correct()->timings[0].samples, 20);
  }
}

TEST_F(WholeEvaluator, ASearchFindsItInAFewEvaluations) {
  settings_.probes = true;
  settings_.probes_each = 4;
  task_.matmul_flops = "2*N";
  bool found = false;
  for (int k = 0; k < 100 && !found; ++k) {
    const Evaluation honest = evaluate("honest");
    ASSERT_TRUE(honest.correct() != nullptr) << said(honest);
    EXPECT_TRUE(honest.correct()->labels.empty());
    found = evaluate("two_parts").correct() == nullptr;
  }
  EXPECT_TRUE(found);
}

// Others would be built on it.
TEST_F(WholeEvaluator, WhatWouldBecomeTheBestMeetsAllProbes) {
  settings_.probes = true;
  settings_.probes_each = 1;
  constexpr int kFewest = 4, kMost = 12;
  int missed = 0;
  for (int k = 0; k < kFewest || (k < kMost && missed == 0); ++k) {
    const Evaluation faster = evaluate("skips_when_small", "twice_as_slow");
    ASSERT_TRUE(faster.correct() != nullptr) << said(faster);
    EXPECT_EQ(faster.correct()->labels, std::vector<std::string>{"given-distribution-only"});
    const Evaluation no_faster = evaluate("skips_when_small", "honest");
    ASSERT_TRUE(no_faster.correct() != nullptr) << said(no_faster);
    missed += no_faster.correct()->labels.empty() ? 1 : 0;
  }
  EXPECT_GT(missed, 0) << "a search runs few kinds for the others";
}

}  // namespace
}  // namespace kernelpro::testing
