// SPDX-License-Identifier: Apache-2.0
// The whole loop with a real store, search and proposers; only compiling and running are faked.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <random>

#include "base/files.h"
#include "base/stop.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/evaluate_one.h"
#include "run/launch.h"
#include "run/planted.h"
#include "run/run.h"
#include "run/store/store.h"
#include "run/store/testing.h"
#include "run/testing/whole_loop.h"
#include "search/searches.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;
using testing::LoopTest;
using testing::smooth_landscape;

TEST_F(LoopTest, FindsConfirmsAndStoresAWinner) {
  const auto result =
      optimize_with(fake_station(fake), fake_task(), settings_for(run, 50), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 50);
  EXPECT_GT(result->speedup, 9);  // the optimum is 100 us, the start about 1100
  EXPECT_LT(result->best_us, 110);
  EXPECT_LE(result->speedup_low, result->speedup);
  EXPECT_TRUE(contains(result->stopped_by, "50 evaluations")) << result->stopped_by;
  EXPECT_GT(result->own_ms_per_evaluation, 0);
  EXPECT_EQ(count(Event::kPrepared), 1);
  EXPECT_EQ(count(Event::kEvaluated), 50);
  EXPECT_EQ(count(Event::kConfirmed), 1);
  EXPECT_EQ(seen.back().event, Event::kConfirmed);
  EXPECT_EQ(stored_in(run).size(), 50u);
  const auto store = Store::open(run, Store::Mode::kRead);
  const auto confirmation = (*store)->confirmation();
  ASSERT_TRUE(confirmation && *confirmation);
  EXPECT_EQ((*confirmation)->best, result->best);
  // Running it again costs nothing and gives the same result.
  const auto again = resume_with(fake_station(fake), run, nullptr, observer);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->best, result->best);
  EXPECT_EQ(again->evaluations, 50);
  EXPECT_DOUBLE_EQ(again->speedup, result->speedup);
}

TEST_F(LoopTest, FailedCandidatesCostOneEvaluationEach) {
  fake.landscape = [](const KnobValues& k) {
    if (knob(k, "V") == 16) return 0.0;
    if (knob(k, "U") == 3) return -1.0;
    return smooth_landscape(k);
  };
  const auto result =
      optimize_with(fake_station(fake), fake_task(), settings_for(run, 60), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_GT(result->speedup, 9);
  EXPECT_TRUE(contains(seen.back().failures_by_kind, "compile-error"));
  EXPECT_TRUE(contains(seen.back().failures_by_kind, "wrong-result"));
  EXPECT_LT(seen.back().failures, 20);
}

TEST_F(LoopTest, AWrongStartIsRecordedAndTheSearchGoesOn) {
  fake.landscape = [](const KnobValues& k) {
    return knob(k, "V") == 1 ? -1.0 : smooth_landscape(k);
  };
  const auto result = optimize_with(fake_station(fake), fake_task(), settings_for(run), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_GT(result->best, 1);
  EXPECT_LT(result->best_us, 130);
}

TEST_F(LoopTest, NothingCorrectIsAnHonestResult) {
  fake.landscape = [](const KnobValues&) { return -1.0; };
  const auto result =
      optimize_with(fake_station(fake), fake_task(), settings_for(run, 10), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->best, 0);
  EXPECT_EQ(result->evaluations, 10);
  EXPECT_EQ(count(Event::kConfirmed), 0);
}

TEST_F(LoopTest, EndsWhenTheSpaceIsExhausted) {
  fake.landscape = [](const KnobValues& k) { return 100 / knob(k, "V"); };
  Task task = fake_task();
  task.kernel_cpp = "// @knob V 1 2 4\n#include \"task.h\"\n";
  const auto result = optimize_with(fake_station(fake), task, settings_for(run), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 3);
  EXPECT_TRUE(contains(result->stopped_by, "tuner has tried everything")) << result->stopped_by;
  // The store says so too: a resume need not ask again, and a report shows it.
  const auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto nodes = stored_nodes(**store);
  ASSERT_TRUE(nodes) << nodes.error().text();
  for (const SearchNode& node : *nodes) EXPECT_TRUE(node.closed) << node.id;
  EXPECT_EQ(nodes->at(0).reason, "its proposer has nothing more to add");
  RunSettings other = settings_for(run);
  EXPECT_FALSE(closed_lines(**store, other)->empty());
  other.proposer = "exchange";
  EXPECT_TRUE(closed_lines(**store, other)->empty()) << "another writer may have more";
}

TEST_F(LoopTest, AKernelWithoutKnobsGetsThoseThatItsTextOffers) {
  fake.landscape = [](const KnobValues& k) {
    return k.contains("UNROLL") ? 100 / (1 + knob(k, "UNROLL")) : 100.0;
  };
  Task task = fake_task();
  task.kernel_cpp =
      "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
      "  for (int i = 0; i < 64; ++i) args.y[i] = 0;\n}\n";
  const auto result = optimize_with(fake_station(fake), task, settings_for(run), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_GT(result->evaluations, 2);
  EXPECT_GT(result->speedup, 9);
  const auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto second = (*store)->candidate(2, false);
  ASSERT_TRUE(second) << second.error().text();
  const Candidate& added = second->known.candidate;
  EXPECT_TRUE(contains(added.source, "// @knob UNROLL")) << added.source;
  EXPECT_EQ(added.knobs.at("UNROLL"), "0") << "the original";
  EXPECT_TRUE(contains(added.origin.idea, "with knobs: UNROLL")) << added.origin.idea;
}

TEST_F(LoopTest, PlateauStops) {
  RunSettings settings = settings_for(run, 1000);
  settings.plateau = 25;
  const auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_TRUE(contains(result->stopped_by, "nothing better")) << result->stopped_by;
  EXPECT_GT(result->speedup, 9);
}

TEST_F(LoopTest, AWinnerThatDoesNotHoldGivesWayToTheOneBefore) {
  int calls = 0;
  fake.confirm_factor = [&calls] { return ++calls == 1 ? -1.0 : 1.0; };
  const auto result = optimize_with(fake_station(fake), fake_task(), settings_for(run), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(count(Event::kUnconfirmed), 1);
  EXPECT_EQ(count(Event::kConfirmed), 1);
  std::vector<std::int64_t> champions;
  for (const Progress& p : seen) {
    if (p.event == Event::kBest) champions.push_back(p.candidate);
  }
  ASSERT_GE(champions.size(), 2u);
  EXPECT_EQ(result->best, champions[champions.size() - 2]);
}

// An earlier best that is clearly slower is there for a winner that does not hold, and costs
// nothing beside one that does.
TEST_F(LoopTest, OnlyWhatMayBeatTheWinnerIsConfirmedBesideIt) {
  for (const bool far : {true, false}) {
    int asked = 0;
    fake.confirm_factor = [&asked] { return ++asked, 1.0; };
    fake.landscape = [far](const KnobValues& k) {
      const double us = smooth_landscape(k);  // 100 at best
      return far ? us : 1000 + us / 20;
    };
    const std::string own = run + (far ? "-far" : "-near");
    const auto result = optimize_with(fake_station(fake), fake_task(), settings_for(own), observer);
    ASSERT_TRUE(result) << result.error().text();
    if (far) {
      EXPECT_EQ(asked, 1) << "the others are slower by far";
    } else {
      EXPECT_GT(asked, 1) << "the one before is nearly as fast";
    }
  }
}

// Where the start's times scatter, the order that the search found in turn decides.
TEST_F(LoopTest, AWinnerGivesWayOnlyToOneThatIsClearlyFasterInTheConfirmation) {
  for (const double spread : {0.2, 0.001}) {
    int asked = 0;
    fake.confirm_factor = [&asked] { return ++asked == 1 ? 1.0 : 0.9; };
    fake.confirm_spread = spread;
    fake.landscape = [](const KnobValues& k) { return 1000 + smooth_landscape(k) / 20; };
    seen.clear();
    const auto result = optimize_with(fake_station(fake), fake_task(),
                                      settings_for(run + number(spread, 3)), observer);
    ASSERT_TRUE(result) << result.error().text();
    ASSERT_GT(asked, 1);
    std::int64_t best = 0;
    for (const Progress& p : seen) best = p.event == Event::kBest ? p.candidate : best;
    EXPECT_EQ(result->best == best, spread > 0.1);
  }
}

TEST_F(LoopTest, AFinalistThatTheConfirmationFindsSlowerGivesWayToTheStart) {
  fake.confirm_factor = [] { return 1.06; };
  fake.confirm_spread = 0.1;  // what scatters is no excuse
  fake.landscape = [](const KnobValues& k) { return 1000 - 10 * knob(k, "V"); };
  Task task = fake_task();
  task.kernel_cpp = "// @knob V 1 2\n#include \"task.h\"\n";
  const auto result = optimize_with(fake_station(fake), task, settings_for(run), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 2);
  EXPECT_EQ(result->best, 1);
}

// The confirmation runs all probes. What turns out there to keep the contract in part only makes
// way for one that keeps all of it, however many had been asked by then.
TEST_F(LoopTest, NoWinnerKeepsTheContractInPartOnlyWhileAnotherKeepsAllOfIt) {
  int asked = 0;
  fake.confirm_labels = [&asked] {
    return ++asked <= 3 ? std::vector<std::string>{"given-distribution-only"}
                        : std::vector<std::string>();
  };
  const auto result = optimize_with(fake_station(fake), fake_task(), settings_for(run), observer);
  ASSERT_TRUE(result) << result.error().text();
  const auto store = Store::open(run, Store::Mode::kRead);
  const auto confirmation = (*store)->confirmation();
  ASSERT_TRUE(confirmation && *confirmation);
  const Correct* correct = (*confirmation)->evaluation.correct();
  ASSERT_NE(correct, nullptr);
  EXPECT_TRUE(correct->labels.empty()) << correct->labels[0];
  EXPECT_GE(asked, 3);
}

TEST_F(LoopTest, AskedToStopItStopsAndGoesOnLater) {
  int evaluations = 0;
  fake.before_evaluate = [&] {
    if (++evaluations == 12) request_stop();
  };
  const auto first = optimize_with(fake_station(fake), fake_task(), settings_for(run), observer);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->stopped_by, "interrupted");
  EXPECT_EQ(first->evaluations, 12);
  EXPECT_EQ(count(Event::kConfirmed), 0);
  clear_stop();
  const auto second = resume_with(fake_station(fake), run, nullptr, observer);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->evaluations, 40);
  FakeSettings whole;
  whole.landscape = smooth_landscape;
  const std::string other = join(dir.path(), "whole");
  ASSERT_TRUE(optimize_with(fake_station(whole), fake_task(), settings_for(other), nullptr));
  EXPECT_EQ(course(run), course(other))
      << "a resumed run must go the way of one that never stopped";
}

// The run's third evaluation is killed this many times.
std::function<std::optional<Crashed::By>()> killed_at_third(Crashed::By by, int times, int* calls) {
  return [=]() -> std::optional<Crashed::By> {
    const int call = ++*calls;
    if (call < 3 || call >= 3 + times) return std::nullopt;
    return by;
  };
}

TEST_F(LoopTest, AKilledProcessIsStartedAgain) {
  int calls = 0;
  for (const Crashed::By by : {Crashed::By::kOutside, Crashed::By::kPerhapsOutside}) {
    const std::string folder = run + std::to_string(static_cast<int>(by));
    calls = 0;
    fake.killed = killed_at_third(by, 2, &calls);
    const auto result =
        optimize_with(fake_station(fake), fake_task(), settings_for(folder, 5), observer);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_EQ(result->evaluations, 5);
    EXPECT_EQ(calls, 7);
    for (const StoredCandidate& each : stored_in(folder)) {
      if (!each.evaluated) continue;
      EXPECT_EQ(outcome_name(each.known.evaluation.outcome), "correct");
    }
  }
}

TEST_F(LoopTest, WhatTheMachineKeepsKillingEndsTheRunAndIsTriedByAResume) {
  int calls = 0;
  fake.killed = killed_at_third(Crashed::By::kOutside, 3, &calls);
  const auto ended = optimize_with(fake_station(fake), fake_task(), settings_for(run, 5), observer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(ended.error().text(), "kernelpro resume")) << ended.error().text();
  EXPECT_EQ(course(run).size(), 2u) << "the candidate has no verdict";
  const auto resumed = resume_with(fake_station(fake), run, nullptr, observer);
  ASSERT_TRUE(resumed) << resumed.error().text();
  EXPECT_EQ(resumed->evaluations, 5);
  EXPECT_EQ(count(Event::kConfirmed), 1);
  EXPECT_EQ(seen.back().failures, 0);
}

TEST_F(LoopTest, AProcessThatMayHaveKilledItselfIsBlamedInTheEnd) {
  int calls = 0;
  fake.killed = killed_at_third(Crashed::By::kPerhapsOutside, 3, &calls);
  const auto result =
      optimize_with(fake_station(fake), fake_task(), settings_for(run, 5), observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 5);
  EXPECT_TRUE(contains(seen.back().failures_by_kind, "1 crash")) << seen.back().failures_by_kind;
}

TEST_F(LoopTest, MoreBudgetGoesOn) {
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(run, 10), observer));
  const RunSettings more = settings_for(run, 30);
  // When interrupted, it does not report the earlier confirmation.
  fake.before_evaluate = [] { request_stop(); };
  const auto ended = resume_with(fake_station(fake), run, &more, observer);
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(ended->stopped_by, "interrupted");
  EXPECT_FALSE(*(*Store::open(run, Store::Mode::kRead))->confirmation());
  clear_stop();
  fake.before_evaluate = nullptr;
  const auto result = resume_with(fake_station(fake), run, &more, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 30);
  EXPECT_TRUE(contains(result->stopped_by, "30 evaluations")) << result->stopped_by;
}

// A resume reads most of a candidate when it first needs it: with the first request.
TEST_F(LoopTest, ACandidateThatCannotBeReadEndsTheRunWithTheReason) {
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(run, 10), observer));
  storing::patch(run, "UPDATE diagnosis SET json = 'torn'");
  const RunSettings more = settings_for(run, 30);
  const auto resumed = resume_with(fake_station(fake), run, &more, observer);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().kind, ErrorKind::kStore) << resumed.error().text();
  EXPECT_TRUE(contains(resumed.error().message, "cannot be read")) << resumed.error().text();
}

TEST_F(LoopTest, EverySearchFindsAWinner) {
  for (const SearchRow& row : searches()) {
    const std::string folder = run + std::string(row.name);
    RunSettings settings = settings_for(folder, 30);
    settings.search = row.name;
    const auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
    ASSERT_TRUE(result) << row.name << ": " << result.error().text();
    EXPECT_EQ(result->evaluations, 30) << row.name;
    EXPECT_GT(result->speedup, 1.1) << row.name;
  }
}

TEST_F(LoopTest, AnUnknownSearchOrPresetLeavesNoRunBehind) {
  RunSettings settings = settings_for(run);
  settings.search = "breadth";
  const auto unknown = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(contains(unknown.error().next, "mcts, branches, beam, greedy, best-of-n, random"));
  settings.search = "greedy";
  settings.preset = "paper";
  const auto conflict = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_FALSE(conflict);
  EXPECT_TRUE(contains(conflict.error().message, "a setting of mcts, not of greedy"));
  EXPECT_FALSE(exists(run));
}

TEST_F(LoopTest, AnotherMachineIsRefused) {
  ASSERT_TRUE(optimize_with(fake_station(fake), fake_task(), settings_for(run, 10), observer));
  fake.machine = "another machine";
  const RunSettings more = settings_for(run, 30);
  const auto result = resume_with(fake_station(fake), run, &more, observer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kEnvironment);
}

TEST_F(LoopTest, RefusalsLeaveNoRunBehind) {
  Task task = fake_task();
  task.kernel_cpp.clear();
  const auto result = optimize_with(fake_station(fake), task, settings_for(run), observer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(result.error().next, "kernel.cpp"));
  EXPECT_FALSE(exists(run));
}

// A child runs or resumes, and is killed repeatedly until the run is done: each time after a few
// evaluations, at a random moment of the next one, so that every machine makes progress.
TEST_F(LoopTest, KilledAtAnyMomentNothingIsLostOrRepeated) {
  std::minstd_rand random(11);
  bool done = false;
  int kills = 0;
  for (int round = 0; round < 100 && !done; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      fake.before_evaluate = [&] {
        if (::write(ends[1], "x", 1) != 1) ::_exit(2);
      };
      const auto result =
          exists(store_path(run))
              ? resume_with(fake_station(fake), run, nullptr, nullptr)
              : optimize_with(fake_station(fake), fake_task(), settings_for(run, 60), nullptr);
      ::_exit(result ? 0 : 1);
    }
    ::close(ends[1]);
    char byte = 0;
    // Sometimes before the first; the child's exit closes the pipe.
    for (auto left = round == 0 ? 0UL : random() % 5; left > 0; --left) {
      if (::read(ends[0], &byte, 1) != 1) break;
    }
    ::usleep(static_cast<useconds_t>(random() % 6000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(ends[0]);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      done = true;
    }
    kills += WIFSIGNALED(status);
  }
  ASSERT_TRUE(done);
  EXPECT_GT(kills, 3);
  const std::vector<StoredCandidate> all = stored_in(run);
  EXPECT_EQ(all.size(), 60u);
  // The evaluator's own log: only an evaluation in flight at a kill may appear twice.
  std::map<std::string, int> started;
  for (const std::string& hash : lines(*read_file(fake.log))) ++started[hash];
  int extra = 0;
  for (const auto& [hash, times] : started) extra += times - 1;
  EXPECT_LE(extra, kills);
  FakeSettings whole;
  whole.landscape = smooth_landscape;
  const std::string other = join(dir.path(), "whole");
  ASSERT_TRUE(optimize_with(fake_station(whole), fake_task(), settings_for(other, 60), nullptr));
  EXPECT_EQ(course(run), course(other));
}

TEST_F(LoopTest, EvaluateOneKernel) {
  const Task task = fake_task();
  const auto one =
      evaluate_one(task, TargetKind::kCpu, task.kernel_cpp, {{"V", "8"}}, {}, fake_station(fake));
  ASSERT_TRUE(one) << one.error().text();
  ASSERT_NE(one->evaluation.correct(), nullptr);
  EXPECT_NEAR(one->evaluation.correct()->versus->ratio, std::exp(1.5), 0.01) << "against the start";
  EXPECT_EQ(one->candidate.knobs.at("T"), "1");
  EXPECT_GT(one->evidence.items().size(), 0u);
  const auto unknown =
      evaluate_one(task, TargetKind::kCpu, task.kernel_cpp, {{"W", "8"}}, {}, fake_station(fake));
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(contains(unknown.error().next, "V T C S U")) << unknown.error().text();
  const auto value =
      evaluate_one(task, TargetKind::kCpu, task.kernel_cpp, {{"V", "3"}}, {}, fake_station(fake));
  ASSERT_FALSE(value);
  EXPECT_TRUE(contains(value.error().next, "1 2 4 8 16")) << value.error().text();
}

// What `--feedback` keeps from writers, it keeps from the tuner too, whose reasons stand in
// prompts.
TEST_F(LoopTest, TheTunerIsGivenNoDiagnosisThatWritersDoNotGet) {
  const auto reasons = [&](Feedback feedback) {
    RunSettings settings = settings_for(join(dir.path(), std::string(feedback_name(feedback))), 30);
    settings.feedback = feedback;
    const auto one_thread = [&](const Task& task, const StationSettings& with) {
      auto target = testing::fake_target(fake)(task, with);
      target->collect = [inner = target->collect](const Task& t, const Case& c, const Machine& m,
                                                  const Binary& b, const Evaluation& e,
                                                  const CallFacts& f) {
        Evidence evidence = inner(t, c, m, b, e, f);
        evidence.set("cpu.threads_busy", 1, Level::kTiming, "timing");
        evidence.set("machine.parallel_units", 8, Level::kTiming, "task");
        return evidence;
      };
      return target;
    };
    EXPECT_TRUE(optimize_with(local_stations(one_thread), fake_task(), settings, observer));
    int told = 0;
    for (const StoredCandidate& each : stored_in(settings.directory)) {
      const Origin& origin = each.known.candidate.origin;
      told += contains(origin.idea, "prescribes") || !origin.answers.empty();
    }
    return told;
  };
  EXPECT_GT(reasons(Feedback::kDiagnosed), 0);
  EXPECT_EQ(reasons(Feedback::kRaw), 0);
  EXPECT_EQ(reasons(Feedback::kNone), 0);
}

}  // namespace
}  // namespace kernelpro
