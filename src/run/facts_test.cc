// SPDX-License-Identifier: Apache-2.0
// Facts from a run's evaluations to another run's prompts.
#include "run/facts.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "core/task/operator_family.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/proposers.h"
#include "run/run.h"
#include "run/store/fact_file.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;

Known evaluated(std::int64_t id, const std::string& source, std::int64_t parent, Outcome outcome) {
  Known known;
  known.id = id;
  known.candidate.source = source;
  known.candidate.origin = {"model", parent, "idea " + std::to_string(id), {}};
  known.evaluation.outcome = std::move(outcome);
  return known;
}

Correct at(double us) {
  Correct correct;
  correct.timings.push_back({"large", us, us, us, 20, "calls in turn"});
  return correct;
}

struct FactOfTest : ::testing::Test {
  Ledger ledger;
  Machine machine;
  FactFrame frame{fake_task(), TargetKind::kCpu, machine};
  Known start = evaluated(1, "#include \"task.h\"\na\n", 0, at(100));
};

TEST_F(FactOfTest, TellsWhatWasTriedAndWhatCameOfIt) {
  start.diagnosis.bound = Bound::kMemory;
  start.diagnosis.fraction_of_ceiling = 0.25;
  ledger.record(start);
  EXPECT_FALSE(fact_of(frame, ledger, evaluated(9, "x", 0, at(1)))) << "it has no parent";
  Known child = evaluated(2, "#include \"task.h\"\n#include <immintrin.h>\na\nb\n", 1, at(50));
  child.candidate.origin.answers = FindingRef::parse("scalar-loads: vectorize");
  auto fact = fact_of(frame, ledger, child);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->idea, "idea 2");
  EXPECT_EQ(fact->task, "scale");
  EXPECT_EQ(fact->bound, Bound::kMemory);
  EXPECT_DOUBLE_EQ(fact->fraction, 0.25);
  EXPECT_DOUBLE_EQ(fact->speedup, 2);
  EXPECT_EQ(fact->low, 0) << "they were not measured turn by turn";
  EXPECT_EQ(fact->api, std::vector<std::string>{"<immintrin.h>"});
  EXPECT_EQ(fact->error, "");
  std::get<Correct>(child.evaluation.outcome).versus =
      Correct::Versus{start.candidate.content_hash(), 1.9, 1.8, 2.0};
  fact = fact_of(frame, ledger, child);
  EXPECT_DOUBLE_EQ(fact->speedup, 1.9);
  EXPECT_DOUBLE_EQ(fact->low, 1.8);
}

// A request names a parent and shows the best beside it; writers build on either.
TEST_F(FactOfTest, IsAboutWhatASourceWasMadeFrom) {
  ledger.record(start);
  Known best = evaluated(2, "#include \"task.h\"\na\nanother loop\nwith a pipeline\n", 1, at(50));
  const Known slow =
      evaluated(3, "#include \"task.h\"\na\nits own tile\nand its stores\n", 1, at(90));
  std::get<Correct>(best.evaluation.outcome).versus =
      Correct::Versus{start.candidate.content_hash(), 2, 1.9, 2.1};
  ledger.record(best);
  ledger.record(slow);
  const auto child = [&](const std::string& more) {
    Known made = evaluated(4, "#include \"task.h\"\na\n" + more + "a new idea\n", 3, at(40));
    std::get<Correct>(made.evaluation.outcome).versus =
        Correct::Versus{best.candidate.content_hash(), 1.25, 1.2, 1.3};
    return made;
  };
  const Known of_best = child("another loop\nwith a pipeline\n");
  EXPECT_EQ(made_from(ledger, of_best)->id, 2);
  const auto fact = fact_of(frame, ledger, of_best);
  ASSERT_TRUE(fact);
  EXPECT_DOUBLE_EQ(fact->speedup, 1.25) << "and not 2.25x the parent that it has nothing of";
  EXPECT_EQ(fact->parent, best.candidate.content_hash());
  EXPECT_EQ(made_from(ledger, child("its own tile\nand its stores\n"))->id, 3);
  EXPECT_EQ(made_from(ledger, child("something else\n"))->id, 3) << "of neither";
  Known failed = of_best;
  failed.evaluation.outcome = WrongResult{"small", "y", "element 3 is off", 0.5, 1e-5};
  EXPECT_EQ(made_from(ledger, failed)->id, 3) << "it was measured in turn with nothing";
}

TEST_F(FactOfTest, TellsOfFailuresAndTheirCure) {
  ledger.record(start);
  Known broken = evaluated(2, "// idea: one\n#include \"task.h\"\na\nfoo(;\n", 1,
                           CompileError{"k.cpp:4: error: expected expression"});
  const auto failure = fact_of(frame, ledger, broken);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->failure, "k.cpp:4: error: expected expression");
  EXPECT_EQ(failure->speedup, 0);
  EXPECT_EQ(failure->cure, "");
  ledger.record(broken);
  Known mended = evaluated(3, "// idea: two\n#include \"task.h\"\na\nfoo();\n", 1, at(80));
  mended.candidate.origin.idea = "idea 2";
  mended.candidate.origin.repairs = 2;
  const auto cure = fact_of(frame, ledger, mended);
  ASSERT_TRUE(cure);
  EXPECT_EQ(cure->idea, "idea 2");
  EXPECT_EQ(cure->error, "k.cpp:4: error: expected expression");
  EXPECT_EQ(cure->cure, "- foo(;\n+ foo();");
  // The same when the failed one is the parent itself.
  Known below = evaluated(4, "#include \"task.h\"\na\nbar();\n", 2, at(80));
  EXPECT_EQ(fact_of(frame, ledger, below)->cure, "- foo(;\n+ bar();");
}

TEST(ChangedLines, AreFewAndShort) {
  std::string many;
  for (int i = 0; i < 50; ++i) many += "line " + std::to_string(i) + std::string(500, 'x') + "\n";
  const std::string text = changed_lines(many, "  same\n");
  EXPECT_TRUE(contains(text, "(47 more lines)")) << text;
  EXPECT_LT(text.size(), 600u);
  EXPECT_EQ(changed_lines("a\nb\nb\n", "b\n  a\n"), "- b") << "each line counts once";
  EXPECT_EQ(changed_lines("a", "a"), "");
}

TEST(IsRepair, AnotherKernelIsNoCure) {
  std::string one, other;
  for (int i = 0; i < 20; ++i) {
    one += "one " + std::to_string(i) + "\n";
    other += "other " + std::to_string(i) + "\n";
  }
  EXPECT_FALSE(is_repair(one, other));
  EXPECT_TRUE(is_repair(one, one + "and a line\n"));
  EXPECT_TRUE(is_repair("a\nfoo(;\n", "a\nfoo();\n"));
}

struct RunFactsTest : ::testing::Test {
  TempDir dir;
  std::string path = join(dir.path(), "facts.db");
  std::vector<std::string> notes;

  StationMaker maker() {
    FakeSettings fake;
    fake.landscape = testing::smooth_landscape;
    return fake_station(fake);
  }
  RunSettings settings(const std::string& name) {
    RunSettings s;
    s.directory = join(dir.path(), name);
    s.max_evaluations = 12;
    s.near_ceiling = 0;
    s.facts = path;
    return s;
  }
  Observer observer() {
    return [this](const Progress& progress) {
      if (progress.event == Event::kNote) notes.push_back(progress.detail);
    };
  }
  std::size_t remembered() { return FactFile(path).read_all()->size(); }
  // The prompt for a person; nobody answers.
  std::string asked(RunSettings s) {
    s.proposer = "exchange";
    s.exchange_wait_s = 0;
    EXPECT_TRUE(optimize_with(maker(), fake_task(), s, observer()));
    return read_file(join(exchange_folder(s.directory), "0001/prompt.md")).value_or("");
  }
};

TEST_F(RunFactsTest, ARunLeavesFactsAndTheNextOneTellsThem) {
  EXPECT_FALSE(contains(asked(settings("before")), "What earlier runs taught"));
  ASSERT_TRUE(optimize_with(maker(), fake_task(), settings("one"), observer()));
  EXPECT_EQ(remembered(), 11u) << "all but the start";
  const std::string prompt = asked(settings("two"));
  EXPECT_TRUE(contains(prompt, "## What earlier runs taught\n- ")) << prompt;
  EXPECT_TRUE(contains(prompt, "x its parent")) << prompt;
  RunSettings off = settings("three");
  off.memory = false;
  const std::string without = asked(off);
  EXPECT_FALSE(contains(without, "What earlier runs taught"));
  EXPECT_TRUE(contains(without, "goes without memory"));
  EXPECT_TRUE(notes.empty()) << notes[0];
}

TEST_F(RunFactsTest, WhatARunBeganWithStaysWithIt) {
  ASSERT_TRUE(optimize_with(maker(), fake_task(), settings("one"), observer()));
  const std::string prompt = asked(settings("two"));
  // A new request after the user's file is gone: the run has its own copy.
  ASSERT_EQ(std::remove(path.c_str()), 0);
  const auto again = propose(settings("two").directory, 1);
  ASSERT_TRUE(again) << again.error().text();
  const std::string second = *read_file(join(again->front(), "prompt.md"));
  const auto taught = [](const std::string& text) {
    const std::size_t from = text.find("## What earlier runs taught");
    return text.substr(from, text.find("## The rules") - from);
  };
  EXPECT_EQ(taught(second), taught(prompt));
  EXPECT_FALSE(exists(path));
}

TEST_F(RunFactsTest, AResumedRunLeavesTheSameFacts) {
  const auto told = [this](const std::string& name) {
    const auto store = Store::open(settings(name).directory, Store::Mode::kRead);
    return facts_to_json(*facts_of_run(**store));
  };
  ASSERT_TRUE(optimize_with(maker(), fake_task(), settings("whole"), observer()));
  RunSettings half = settings("halves");
  half.max_evaluations = 5;
  ASSERT_TRUE(optimize_with(maker(), fake_task(), half, observer()));
  half.max_evaluations = 12;
  ASSERT_TRUE(resume_with(maker(), half.directory, &half, observer()));
  EXPECT_EQ(told("halves"), told("whole"));
  EXPECT_EQ(remembered(), 22u);
  // The facts in the runs' stores match those written during the runs: nothing is new.
  for (const char* name : {"whole", "halves"}) {
    const auto store = Store::open(settings(name).directory, Store::Mode::kRead);
    EXPECT_EQ(*FactFile(path).add((*store)->run_id(), *facts_of_run(**store)), 0) << name;
  }
}

TEST_F(RunFactsTest, ADamagedMemoryCostsNoRun) {
  ASSERT_TRUE(write_file(path, "no database at all, and long enough to be looked at"));
  ASSERT_TRUE(optimize_with(maker(), fake_task(), settings("one"), observer()));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(contains(notes[0], path + ".damaged-1")) << notes[0];
  EXPECT_EQ(remembered(), 11u);
}

TEST_F(RunFactsTest, AMemoryThatCannotBeWrittenIsSaidOnce) {
  RunSettings s = settings("one");
  ASSERT_TRUE(write_file(join(dir.path(), "file"), ""));
  s.facts = join(dir.path(), "file/facts.db");
  ASSERT_TRUE(optimize_with(maker(), fake_task(), s, observer()));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(contains(notes[0], "gets no more of this run")) << notes[0];
}

TEST_F(RunFactsTest, SweepsAndReplaysLeaveNone) {
  ASSERT_TRUE(optimize_with(maker(), fake_task(), settings("one"), observer()));
  RunSettings replay = settings("two");
  replay.proposer = "replay";
  replay.replay_from = settings("one").directory;
  ASSERT_TRUE(optimize_with(maker(), fake_task(), replay, observer()));
  RunSettings without = settings("three");
  without.facts = "";
  ASSERT_TRUE(optimize_with(maker(), fake_task(), without, observer()));
  EXPECT_EQ(remembered(), 11u);
}

// End to end: a real compiler, real workers, the softmax example on fewer rows.
TEST_F(RunFactsTest, SoftmaxOnThisMachineTeachesTheNextRun) {
  OpenSettings open;
  open.target = TargetKind::kCpu;
  const auto opened = open_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax", open);
  ASSERT_TRUE(opened) << opened.error().text();
  Task softmax = opened->task;
  for (Case& each : softmax.cases) each.dims["ROWS"] = 64;
  RunSettings first = settings("one");
  first.max_evaluations = 2;
  first.probes = false;
  ASSERT_TRUE(optimize(softmax, first, observer()));
  const auto facts = FactFile(path).read_all();
  ASSERT_TRUE(facts);
  ASSERT_EQ(facts->size(), 1u);
  EXPECT_TRUE(has_kind(facts->front().family, "softmax"));
  EXPECT_FALSE(facts->front().machine.empty());
  RunSettings second = settings("two");
  second.proposer = "exchange";
  second.exchange_wait_s = 0;
  second.probes = false;
  ASSERT_TRUE(optimize(softmax, second, observer()));
  const auto prompt = read_file(join(exchange_folder(second.directory), "0001/prompt.md"));
  ASSERT_TRUE(prompt);
  EXPECT_TRUE(contains(*prompt, "## What earlier runs taught\n- " + facts->front().knobs))
      << *prompt;
}

}  // namespace
}  // namespace kernelpro
