// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/recall.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "write/prompt/prompt.h"
#include "write/testing.h"

namespace kernelpro {
namespace {

using namespace proposing;

Machine machine_named(const std::string& name, const std::string& arch) {
  Machine machine;
  machine.target = "cpu";
  machine.name = name;
  machine.arch = arch;
  return machine;
}

struct RecallTest : ::testing::Test {
  Task t = task();
  Machine here = machine_named("this box", "x86-64");
  std::vector<Known> all = {known(1, {}, 100), known(2, {{"VEC", "4"}}, 40)};
  ProposalRequest request;
  std::vector<Fact>& facts = request.earlier;
  std::vector<Fact>& lately = request.lately;

  void SetUp() override {
    all[1].diagnosis.bound = Bound::kMemory;
    all[1].diagnosis.findings = {finding("scalar-loads", {"vectorize"})};
    request.task = &t;
    request.machine = here;
    request.parent = shared(all[1]);
    set_history(all, 2, &request);
  }
  // A fact of this task and machine; faster when `speedup` is above 1.
  Fact fact(const std::string& idea, double speedup) {
    Fact f;
    f.machine = here.name;
    f.arch = here.arch;
    f.family = {"elementwise"};
    f.task = t.name;
    f.task_hash = t.content_hash();
    f.idea = idea;
    f.outcome = speedup > 0 ? OutcomeKind::kCorrect : OutcomeKind::kWrongResult;
    f.failure = speedup > 0 ? "" : "wrong result: element 3 is off";
    f.speedup = speedup;
    return f;
  }
  Fact elsewhere(Fact f, const std::string& machine, const std::string& arch) {
    f.machine = machine;
    f.arch = arch;
    return f;
  }
  Fact of_task(Fact f, const std::string& name, std::vector<std::string> family) {
    f.task = name;
    f.task_hash = name;
    f.family = std::move(family);
    return f;
  }
  std::vector<std::string> told() {
    std::vector<std::string> rows;
    for (const std::string& line : lines(memory_text(request))) {
      if (line.starts_with("- ")) rows.push_back(line);
    }
    return rows;
  }
};

TEST_F(RecallTest, NothingIsSaidWhereThereIsNothing) {
  EXPECT_EQ(memory_text(request), "");
  facts = {of_task(fact("Cumulative sums by blocks", 3), "sums", {"scan"})};
  EXPECT_EQ(memory_text(request), "") << "another family";
  request.earlier.clear();
  EXPECT_EQ(memory_text(request), "");
  EXPECT_EQ(cures_text(request, "error: no"), "");
}

TEST_F(RecallTest, TheTaskComesBeforeItsFamilyAndTheMachineBeforeItsKind) {
  facts = {of_task(elsewhere(fact("delta words apart", 1.2), "that box", "x86-64"), "other",
                   {"elementwise"}),
           of_task(fact("gamma phrase instead", 1.2), "other", {"elementwise"}),
           elsewhere(fact("beta something else", 1.2), "that box", "x86-64"),
           fact("alpha first of them", 1.2)};
  const auto rows = told();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], "- alpha first of them => 1.2x its parent");
  EXPECT_EQ(rows[1], "- beta something else (on that box) => 1.2x its parent");
  EXPECT_EQ(rows[2], "- gamma phrase instead (on other) => 1.2x its parent");
  EXPECT_EQ(rows[3], "- delta words apart (on other; on that box) => 1.2x its parent");
}

TEST_F(RecallTest, OtherArchitecturesAreAskedLast) {
  facts = {elsewhere(fact("on a foreign machine", 9), "far", "aarch64")};
  EXPECT_EQ(told().size(), 1u) << "nothing else is known";
  facts.push_back(fact("here", 1.1));
  const auto rows = told();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_TRUE(contains(rows[0], "here")) << rows[0];
}

TEST_F(RecallTest, WhatAnswersTheParentsFindingComesFirst) {
  facts = {fact("load four floats at once", 1.5), fact("give work to every thread", 1.6)};
  facts[0].answers = FindingRef::parse("scalar-loads: vectorize");
  facts[0].bound = Bound::kMemory;
  facts[0].fraction = 0.41;
  facts[0].low = 1.4;
  facts[0].high = 1.6;
  const auto rows = told();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0],
            "- load four floats at once (for scalar-loads: vectorize; the parent was memory-bound,"
            " at 41 % of the ceiling) => 1.5x its parent (1.4 to 1.6)");
  // What the ablations withhold.
  request.feedback = Feedback::kNone;
  EXPECT_FALSE(contains(memory_text(request), "scalar-loads"));
  EXPECT_TRUE(contains(told()[0], "every thread")) << told()[0];
}

TEST_F(RecallTest, LikeAttemptsAreOneLine) {
  facts = {fact("Stage 2 rows in shared memory", 0),
           fact("stage 4 rows in shared memory", 0.9),
           fact("Stage rows in shared memory, 8", 0.95),
           fact("Unroll by two", 1.3),
           fact("unroll by TWO", 1.1),
           fact("Unroll by two!", 0)};
  const auto rows = told();
  ASSERT_EQ(rows.size(), 2u);
  const std::string text = join_text(rows, "\n");
  EXPECT_TRUE(contains(text,
                       "=> tried 3 times, never faster: 1 wrong-result; 2 no faster, at best "
                       "0.95x the parent"))
      << text;
  EXPECT_TRUE(
      contains(text, "=> tried 3 times, faster 2 times: 1.1x to 1.3x the parent; 1 wrong-result"))
      << text;
}

// The tuner's candidates are distinguished by their numbers.
TEST_F(RecallTest, KnobsAreLikeWhenTheyMovedAlike) {
  facts = {fact("vectorize", 1.3), fact("vectorize", 0.9), fact("vectorize", 1.4)};
  facts[0].knobs = facts[2].knobs = "VEC 1 -> 4";
  facts[1].knobs = "VEC 4 -> 1";
  EXPECT_EQ(told().size(), 2u);
}

TEST_F(RecallTest, IsBounded) {
  for (int i = 0; i < 300; ++i) {
    const auto c = static_cast<char>('a' + i % 26);
    facts.push_back(fact(std::string(3, c) + std::string(3, static_cast<char>('a' + i / 26)), 1.1));
    facts.back().idea += std::string(i % 7 == 0 ? 3000 : 0, 'x');
  }
  EXPECT_EQ(told().size(), RecallLimits().lines);
  EXPECT_LE(memory_text(request).size(), RecallLimits().bytes + 100);
  EXPECT_EQ(memory_text(request), memory_text(request));
  RecallLimits few;
  few.bytes = 100;
  EXPECT_LE(memory_text(request, few).size(), 200u);
}

TEST_F(RecallTest, FeaturesThatCompiledAreToldUnlessTheyAreThere) {
  facts = {fact("one way to do this", 1.2), fact("a second manner entirely", 1.2)};
  facts[0].api = {"_mm256_fmadd_ps", "<immintrin.h>"};
  facts[1].api = {"_mm256_fmadd_ps", "#pragma omp parallel"};
  all[1].candidate.source += "#pragma omp parallel\n";
  request.parent = shared(all[1]);
  EXPECT_EQ(told().back(),
            "- Compiled, and in correct kernels: `_mm256_fmadd_ps`, `<immintrin.h>`");
}

TEST_F(RecallTest, CuresAreFoundByWhatFailed) {
  facts = {fact("other", 1.1)};
  facts[0].error = "kernel.cpp:9: error: expected primary-expression before token";
  facts[0].cure = "- int x = ;\n+ int x = 0;";
  lately = {fact("mine", 1.1)};
  lately[0].error = "kernel.cpp:7:3: error: no such register";
  lately[0].cure = "- wrong();\n+ right();";
  const std::string failure =
      failure_text(CompileError{"kernel.cpp:44:1: error: no such register"});
  const std::string text = cures_text(request, failure);
  EXPECT_TRUE(contains(text,
                       "## What cured failures like it\n- `kernel.cpp:7:3: error: no such "
                       "register` was gone after:\n\n      - wrong();\n      + right();\n"))
      << text;
  EXPECT_FALSE(contains(text, "primary-expression"));
  EXPECT_TRUE(contains(memory_text(request), "primary-expression"));
  request.memory = false;
  EXPECT_EQ(cures_text(request, failure), "");
  EXPECT_EQ(memory_text(request), "");
}

TEST_F(RecallTest, WhatARunBeginsWithIsChosenByTaskAndMachine) {
  facts = {of_task(fact("unrelated", 5), "sums", {"scan"}),
           of_task(fact("family", 1.1), "other", {"elementwise"}), fact("same", 1.1)};
  facts.push_back(fact("on the other target", 1.1));
  facts.back().target = TargetKind::kCuda;
  const auto two = facts_for(facts, t, TargetKind::kCpu, here, 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].idea, "family");
  EXPECT_EQ(two[1].idea, "same");
  const auto one = facts_for(facts, t, TargetKind::kCpu, here, 1);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].idea, "same");
}

TEST_F(RecallTest, JunkIsNoCure) {
  Fact fact;
  fact.task = t.name;
  fact.task_hash = t.content_hash();
  fact.family = {"elementwise"};
  fact.outcome = OutcomeKind::kCorrect;
  fact.error = "k.cpp:7: error: no such register";
  fact.cure = "- wide x;\n+ narrow x;";
  request.lately = {fact};
  EXPECT_TRUE(contains(cures_text(request, "k.cpp:7: error: no such register"), "narrow x"));
  request.lately[0].cure = "- wide x;\n- (47 more lines)\n+ narrow x;";
  EXPECT_EQ(cures_text(request, "k.cpp:7: error: no such register"), "") << "another kernel";
  request.lately[0] = fact;
  request.lately[0].error = "k.cpp:7: error: 'larges' was not declared; did you mean 'largest'?";
  EXPECT_EQ(cures_text(request, request.lately[0].error), "") << "a slip of the pen";
}

TEST_F(RecallTest, OfALongRunTheNearestAreTold) {
  std::vector<Known> run;
  run.reserve(100);
  for (int id = 1; id <= 100; ++id) {
    run.push_back(known(id, {}, 100 + id));
    run.back().candidate.source += "// " + std::to_string(id) + "\n";
    run.back().candidate.origin.parent = id == 1 ? 0 : 1;
  }
  run[49].candidate.origin.parent = 30;  // the parent is 50, below 30
  run[69].candidate.origin.parent = 50;  // and has a child
  run[9].candidate.origin.answers = FindingRef::parse("scalar-loads: vectorize");
  run[49].diagnosis.findings = {finding("scalar-loads", {"vectorize"})};
  set_history(run, 60, &request);
  request.parent = shared(run[49]);
  std::vector<std::int64_t> ids;
  for (const KnownPtr& each : worth_telling(request, 9)) ids.push_back(each->id);
  EXPECT_EQ(ids, (std::vector<std::int64_t>{1, 10, 30, 50, 60, 70, 98, 99, 100}));
  EXPECT_EQ(worth_telling(request, 200).size(), 100u);
  Prompts prompts;
  const std::string prompt = exchange_prompt(request, "1", prompts);
  EXPECT_TRUE(contains(prompt, "- (60 are left out that are less related to candidate 50)"));
  EXPECT_TRUE(contains(prompt, "\n- 10 (from 1)"));
  request.memory = false;
  const std::string without = exchange_prompt(request, "1", prompts);
  EXPECT_FALSE(contains(without, "\n- 10 (from 1)"));
  EXPECT_TRUE(contains(without, "goes without memory"));
  EXPECT_TRUE(contains(without, "The best so far is candidate 60"));
}

}  // namespace
}  // namespace kernelpro
