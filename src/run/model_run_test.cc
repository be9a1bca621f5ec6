// SPDX-License-Identifier: Apache-2.0
// A whole run whose kernels a model writes: a real loop, store and search, a real server on a real
// socket (bench/model/server.py); only compiling and running are faked.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/stop.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/run.h"
#include "run/seeds.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "run/store/testing.h"
#include "write/calls.h"
#include "write/model/local_server.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;

const LocalServer& server() {
  static const Result<LocalServer> started = LocalServer::start(KERNELPRO_SOURCE_DIR);
  if (!started) throw Fatal(started.error());
  return *started;
}

Json rule(const char* when, const std::string& say, int times = 1000000) {
  Json json = Json::object();
  json["when"] = when;
  json["say"] = say;
  json["times"] = times;
  return json;
}

// The landscape below times a source by its knob V; 99 does not compile.
std::string kernel(const std::string& v) {
  return "```cpp\n// idea: V is " + v + "\n// @knob V " + v +
         "\n#include \"task.h\"\nextern \"C\" void launch(const Args& args) {}\n```\n";
}
const std::string kPlan = "IDEA: Wider.\nANSWERS: nothing\nGAIN: 2\n";

struct ModelRunTest : ::testing::Test {
  TempDir dir;
  std::string run = join(dir.path(), "run");
  std::string id = "run" + std::to_string(++next_id);
  FakeSettings fake;
  RunSettings settings;
  std::vector<Progress> seen;
  Observer observer = [this](const Progress& p) { seen.push_back(p); };
  static inline int next_id = 0;

  void SetUp() override {
    clear_stop();
    ASSERT_EQ(setenv("KERNELPRO_STATE", join(dir.path(), "state").c_str(), 1), 0);
    fake.landscape = [](const KnobValues& k) {
      return knob(k, "V") == 99 ? 0 : 1000 / knob(k, "V");
    };
    settings.directory = run;
    settings.max_evaluations = 5;
    settings.near_ceiling = 0;
    settings.proposer = "model";
    settings.roles.coder = server().base(id, "script") + "#any";
    settings.roles.ideas = 1;
    settings.roles.tune = 0;
  }
  void TearDown() override { unsetenv("KERNELPRO_STATE"); }
  Result<RunResult> optimize() {
    return optimize_with(fake_station(fake), fake_task(), settings, observer);
  }
  std::unique_ptr<Store> store() const { return std::move(*Store::open(run, Store::Mode::kRead)); }
  int asked() const {
    const Json last = server().ask("/last/" + id);
    return last.is_null() ? 0 : last["turns"].get<int>();
  }
  // "model: repair of 2: Wider. => correct", in the order of evaluation.
  std::vector<std::string> course() const {
    std::map<std::int64_t, std::string> by_order;
    const auto stored = store()->candidates();
    for (const StoredCandidate& each : *stored) {
      const Origin& origin = each.known.candidate.origin;
      by_order[each.order] = origin.proposer + ": " + idea_text(origin) + " => " +
                             (each.evaluated ? outcome_name(each.known.evaluation.outcome) : "?");
    }
    std::vector<std::string> all;
    for (const auto& [order, text] : by_order) all.push_back(text);
    return all;
  }
};

TEST_F(ModelRunTest, AModelThatCannotBeAskedIsFoundBeforeAnythingIsMeasured) {
  fake.log = join(dir.path(), "log");
  settings.roles.coder = "http://127.0.0.1:1/v1#nobody";
  auto result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kEnvironment);
  settings.roles.coder = server().base(id, "404") + "#unheard-of";
  result = optimize_with(fake_station(fake), fake_task(), settings, observer);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(result.error().text(), "unheard-of")) << result.error().text();
  EXPECT_FALSE(exists(fake.log)) << "nothing was measured";
  EXPECT_FALSE(exists(run));
}

// Where there is no GPU: the models write into a run that was begun elsewhere, which measures
// later.
TEST_F(ModelRunTest, ModelsWriteApartFromTheMeasurement) {
  server().script(id,
                  Json(std::vector<Json>{rule("# Plan:", kPlan), rule("# Write:", kernel("99"), 1),
                                         rule("# Write:", kernel("32"), 1)}));
  const RoleSettings roles = settings.roles;
  settings.proposer = "exchange";
  settings.roles = {};
  settings.exchange_wait_s = 0;
  ASSERT_TRUE(optimize());
  RoleSettings nobody = roles;
  nobody.coder = "http://127.0.0.1:1/v1#nobody";
  EXPECT_FALSE(propose_by_models(run, nobody, 1, observer));
  const auto written = propose_by_models(run, roles, 2, observer);
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(*written, 2);
  EXPECT_EQ(store()->candidates()->size(), 3u);
  EXPECT_EQ(store()->calls()->size(), 4u) << "two plans, two sources";
  const auto measured = measure_with(fake_station(fake), run, observer);
  ASSERT_TRUE(measured) << measured.error().text();
  EXPECT_EQ(measured->evaluations, 3);
  EXPECT_NEAR(measured->speedup, 32, 0.5);
  // The one that failed promises less than the best now: another idea is worth more than its
  // repair.
  server().script(id,
                  Json(std::vector<Json>{rule("# Plan:", kPlan), rule("# Write:", kernel("64"))}));
  const auto more = propose_by_models(run, roles, 1, observer);
  ASSERT_TRUE(more) << more.error().text();
  EXPECT_EQ(*more, 1);
  EXPECT_EQ(store()->calls()->back().role, ModelRole::kCoder);
}

TEST_F(ModelRunTest, PlansWritesRepairsAndWins) {
  server().script(id, Json(std::vector<Json>{
                          rule("# Plan:", kPlan), rule("# Write:", kernel("99"), 1),
                          rule("# Repair:", kernel("16"), 1), rule("# Write:", kernel("32"), 1),
                          rule("# Write:", kernel("8"))}));
  const auto result = optimize();
  ASSERT_TRUE(result) << result.error().text();
  const std::vector<std::string> all = course();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1], "model: Wider. => compile-error");
  EXPECT_EQ(all[2], "model: repair of 2: Wider. => correct");
  EXPECT_EQ(all[3], "model: Wider. => correct");
  EXPECT_NEAR(result->speedup, 32, 0.5);
  EXPECT_TRUE(contains(result->stopped_by, "5 evaluations"));
  // Every question is stored, with its cost and its result.
  const auto calls = store()->calls();
  ASSERT_TRUE(calls) << calls.error().text();
  EXPECT_EQ(static_cast<int>(calls->size()), asked());
  ASSERT_EQ(calls->size(), 7u) << "three plans, three sources, one repair";
  EXPECT_EQ(calls->at(2).role, ModelRole::kFixer);
  EXPECT_EQ(calls->at(2).repairs, 2);
  const auto repaired = store()->candidates();
  EXPECT_EQ(calls->at(2).gave, repaired->at(2).known.candidate.content_hash());
  EXPECT_GT(usage_from_json(calls->at(0).usage).tokens.input, 0);
  const auto writing = store()->writing(3);
  ASSERT_TRUE(writing && *writing);
  EXPECT_EQ((*writing)->reply, calls->at(2).reply);
}

TEST_F(ModelRunTest, ThreeSourcesAreWrittenSideBySide) {
  settings.roles.ideas = 3;
  settings.max_evaluations = 7;
  server().script(id,
                  Json(std::vector<Json>{rule("# Plan:", kPlan + "IDEA: Deeper.\nIDEA: Flatter.\n"),
                                         rule("# Write:", kernel("{n}"))}));
  const auto result = optimize();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 7);
  EXPECT_EQ(asked(), 8) << "two plans of three ideas each";
  EXPECT_EQ(store()->calls()->size(), 8u);
  std::map<std::string, int> ideas;
  for (const std::string& line : course()) ++ideas[line];
  EXPECT_EQ(ideas["model: Deeper. => correct"], 2);
  EXPECT_EQ(ideas["model: Flatter. => correct"], 2);
}

// The second source is written only after the first one is measured.
TEST_F(ModelRunTest, AFinishedReplyDoesNotWaitForItsSiblings) {
  settings.roles.ideas = 2;
  settings.max_evaluations = 3;
  const std::string measured = join(dir.path(), "measured");
  int begun = 0;
  fake.before_evaluate = [&] {
    if (++begun == 2) {
      EXPECT_TRUE(write_file(measured, ""));
    }
  };
  Json held = rule("Deeper.", kernel("8"));
  held["until"] = measured;
  server().script(id, Json(std::vector<Json>{rule("# Plan:", kPlan + "IDEA: Deeper.\n"), held,
                                             rule("# Write:", kernel("4"))}));
  const auto result = optimize();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 3);
  const std::vector<std::string> all = course();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1], "model: Wider. => correct");
  EXPECT_EQ(all[2], "model: Deeper. => correct");
  EXPECT_EQ(asked(), 3);
}

// Nothing waits for a source that could no longer be measured.
TEST_F(ModelRunTest, ASpentBudgetEndsWhatIsStillWritten) {
  settings.roles.ideas = 2;
  settings.max_evaluations = 2;
  Json held = rule("Deeper.", kernel("8"));
  held["until"] = join(dir.path(), "never");
  server().script(id, Json(std::vector<Json>{rule("# Plan:", kPlan + "IDEA: Deeper.\n"), held,
                                             rule("# Write:", kernel("4"))}));
  const double from = real_clock().now_s();
  const auto result = optimize();
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 2);
  EXPECT_LT(real_clock().now_s() - from, 45) << "the server holds it for a minute";
}

TEST_F(ModelRunTest, ABudgetEndsItAndAnotherOneGoesOn) {
  settings.roles.max_calls = 4;
  server().script(id,
                  Json(std::vector<Json>{rule("# Plan:", kPlan), rule("# Write:", kernel("{n}"))}));
  const auto first = optimize();
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_TRUE(contains(first->stopped_by, "all of the 4 calls are used up")) << first->stopped_by;
  EXPECT_EQ(first->evaluations, 3);
  EXPECT_EQ(asked(), 4);
  EXPECT_TRUE(store()->closed_lines()->empty()) << "with more budget there is more to add";
  // No further calls as long as the budget is the same.
  ASSERT_TRUE(resume_with(fake_station(fake), run, nullptr, observer));
  EXPECT_EQ(asked(), 4);
  RunSettings budgets = *settings_from_json(store()->header()->settings_json);
  EXPECT_EQ(budgets.roles.coder, settings.roles.coder);
  budgets.roles.max_calls = 6;
  const auto second = resume_with(fake_station(fake), run, &budgets, observer);
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(second->evaluations, 4) << "what was spent before counts";
  EXPECT_EQ(asked(), 6);
  EXPECT_TRUE(contains(second->stopped_by, "all of the 6 calls")) << second->stopped_by;
}

// Stopped while evaluating a model's candidate, then resumed: the same course and the same calls as
// without the stop.
TEST_F(ModelRunTest, AnInterruptedRunTakesTheSameCourse) {
  const std::vector<Json> rules = {rule("# Plan:", kPlan), rule("# Write:", kernel("99"), 1),
                                   rule("# Write:", kernel("4"), 1),
                                   rule("# Repair:", kernel("16")), rule("# Write:", kernel("32"))};
  server().script(id, Json(rules));
  ASSERT_TRUE(optimize());
  const std::vector<std::string> whole = course();
  const int calls = asked();
  id += "again";
  run += "-again";
  settings.directory = run;
  settings.roles.coder = server().base(id, "script") + "#any";
  server().script(id, Json(rules));
  int evaluated = 0;
  fake.before_evaluate = [&] {
    if (++evaluated == 2) request_stop();
  };
  const auto stopped = optimize();
  ASSERT_TRUE(stopped) << stopped.error().text();
  EXPECT_EQ(stopped->stopped_by, "interrupted");
  clear_stop();
  const auto result = resume_with(fake_station(fake), run, nullptr, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(course(), whole);
  EXPECT_EQ(asked(), calls);
}

// Killed after the model was paid and before the store had its candidate: the answer is reused,
// without a second call.
TEST_F(ModelRunTest, AKillLosesNoPaidAnswer) {
  server().script(id,
                  Json(std::vector<Json>{rule("# Plan:", kPlan), rule("# Write:", kernel("{n}"))}));
  settings.max_evaluations = 2;
  const pid_t child = ::fork();
  if (child == 0) {
    int evaluated = 0;
    fake.before_evaluate = [&] {
      if (++evaluated == 2) ::raise(SIGKILL);
    };
    (void)optimize();
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(asked(), 2);
  const auto before = store()->candidates();
  ASSERT_EQ(before->size(), 1u) << "the start alone";
  const auto result = resume_with(fake_station(fake), run, nullptr, observer);
  ASSERT_TRUE(result) << result.error().text();
  EXPECT_EQ(result->evaluations, 2);
  EXPECT_EQ(asked(), 2);
  EXPECT_EQ(store()->calls()->size(), 2u);
  const auto writing = store()->writing(2);
  ASSERT_TRUE(writing && *writing);
  EXPECT_EQ((*writing)->request, "0001.1");
}

// An answer that is paid for and cannot be stored ends the run, whatever else is being written.
TEST_F(ModelRunTest, ACallThatCannotBeStoredEndsTheRun) {
  server().script(id,
                  Json(std::vector<Json>{rule("# Plan:", kPlan), rule("# Write:", kernel("{n}"))}));
  observer = [&](const Progress& p) {
    if (p.event != Event::kEvaluated || p.evaluations != 1) return;
    storing::patch(run, "DROP TABLE calls");
  };
  const auto result = optimize();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kStore) << result.error().text();
  EXPECT_EQ(asked(), 1) << "the plan, and nothing that it leads to";
  EXPECT_EQ(course().size(), 1u) << "nothing that depends on it is kept";
}

TEST_F(ModelRunTest, WhatCannotBeginLeavesNoFolder) {
  settings.roles.coder = "nonsense";
  EXPECT_FALSE(optimize());
  settings.roles.coder = "https://example.com/v1#any";
  ASSERT_EQ(std::getenv("KERNELPRO_API_KEY"), nullptr);
  const auto keyless = optimize();
  ASSERT_FALSE(keyless);
  EXPECT_TRUE(contains(keyless.error().next, "KERNELPRO_API_KEY")) << keyless.error().text();
  settings.roles.coder = "";
  EXPECT_TRUE(contains(optimize().error().next, "--model"));
  settings.roles.coder = server().base(id, "script") + "#any";
  settings.prompts = dir.path();
  EXPECT_FALSE(optimize());
  settings.prompts = "";
  settings.start_from = {dir.path()};
  EXPECT_TRUE(contains(optimize().error().text(), "neither a run nor a task folder"));
  EXPECT_FALSE(exists(run));
}

TEST_F(ModelRunTest, RawFeedbackIsRawAndNoneIsNone) {
  settings.max_evaluations = 3;
  settings.roles.one_call = true;
  server().script(id, Json(std::vector<Json>{rule("# Write:", kernel("{n}"))}));
  settings.feedback = Feedback::kRaw;
  ASSERT_TRUE(optimize());
  std::string prompt = store()->calls()->back().prompt;
  EXPECT_TRUE(contains(prompt, "| timing.median |")) << prompt;
  EXPECT_FALSE(contains(prompt, "## Diagnosis"));
  settings.feedback = Feedback::kNone;
  run = settings.directory = join(dir.path(), "none");
  ASSERT_TRUE(optimize());
  prompt = store()->calls()->back().prompt;
  EXPECT_FALSE(contains(prompt, "timing.median"));
  EXPECT_FALSE(contains(prompt, "## Diagnosis"));
  EXPECT_TRUE(contains(prompt, "the start")) << "time and outcome are told";
}

// Seeds: the best of an earlier run and a task folder's kernel come right after the start.
TEST_F(ModelRunTest, BeginsFromEarlierWork) {
  settings.proposer = "tuner";
  settings.max_evaluations = 20;
  const auto earlier = optimize();
  ASSERT_TRUE(earlier) << earlier.error().text();
  const std::string from = run;
  run = settings.directory = join(dir.path(), "later");
  settings.start_from = {from, from};
  settings.max_evaluations = 3;
  ASSERT_TRUE(optimize());
  const auto all = store()->candidates();
  ASSERT_EQ(all->size(), 3u) << "the same seed twice is one";
  const Known& seed = all->at(1).known;
  EXPECT_EQ(all->at(1).order, 2);
  EXPECT_EQ(seed.candidate.origin.proposer, "seed");
  EXPECT_EQ(seed.candidate.origin.parent, 0);
  EXPECT_TRUE(contains(seed.candidate.origin.idea, "The best of the run " + from))
      << seed.candidate.origin.idea;
  EXPECT_EQ(seed.candidate.knobs.at("V"), "16");
  EXPECT_EQ(all->at(2).known.candidate.origin.proposer, "tuner");
  // One that was written for another precision is told so.
  Task coarser = fake_task();
  coarser.precision = Precision::kTf32;
  const auto finer = seeds({from}, coarser, TargetKind::kCpu);
  ASSERT_TRUE(finer);
  EXPECT_TRUE(contains(finer->front().origin.idea, "owed was fp32; here it is tf32"))
      << finer->front().origin.idea;
  // A kernel of another operator, or for another target, is rejected.
  Task other = fake_task();
  other.tensors[0].dtype = DType::kFp16;
  const auto refused = seeds({from}, other, TargetKind::kCpu);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().text(), "other tensors")) << refused.error().text();
  EXPECT_FALSE(seeds({from}, fake_task(), TargetKind::kCuda));
  const auto folder =
      seeds({KERNELPRO_SOURCE_DIR "/examples/softmax"}, fake_task(), TargetKind::kCpu);
  ASSERT_FALSE(folder);
  EXPECT_TRUE(contains(folder.error().text(), "ROWS") || contains(folder.error().text(), "[2]"));
}

}  // namespace
}  // namespace kernelpro
