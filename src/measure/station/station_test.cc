// SPDX-License-Identifier: Apache-2.0
// Orders in, measurements out: what crosses is plain text, and what was built ahead is used.
#include "measure/station/station.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/cancel.h"
#include "base/files.h"
#include "base/text.h"
#include "measure/station/local.h"
#include "measure/station/testing/fake_target.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_target;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;

Candidate candidate(const std::string& v) {
  Candidate one;
  one.source = fake_task().kernel_cpp;
  one.knobs = {{"V", v}};
  one.origin = {"given", 3, "wider loads", {"scalar-loads", "vectorize"}, 2};
  return one;
}

FakeSettings by_v() {
  FakeSettings fake;
  fake.landscape = [](const KnobValues& k) { return knob(k, "V") == 16 ? 0 : 100 / knob(k, "V"); };
  return fake;
}

Order order_of(const std::string& v, const std::string& incumbent = "") {
  Order order;
  order.candidate = candidate(v);
  if (!incumbent.empty()) order.incumbent = candidate(incumbent);
  return order;
}

// A prepared station of the fake target; `task` outlives it.
struct Opened {
  Task task = fake_task();
  Stations stations;
  explicit Opened(const StationMaker& maker) : stations(maker(task, StationSettings())) {
    EXPECT_TRUE(stations.front());
    EXPECT_TRUE(station().prepare());
  }
  Station& station() { return **stations.front(); }
};

TEST(Station, AnOrderSurvivesTheWire) {
  Order order = order_of("4", "2");
  order.confirm = true;
  order.variant = true;
  order.energy = EnergyPlan{5, 1.0};
  order.observe = false;
  order.counters_above.reset();
  const auto back = order_from_json(order_to_json(order));
  ASSERT_TRUE(back);
  EXPECT_EQ(order_to_json(*back), order_to_json(order));
  EXPECT_EQ(back->candidate.content_hash(), order.candidate.content_hash());
  EXPECT_EQ(back->candidate.origin.answers, order.candidate.origin.answers);
  EXPECT_EQ(back->candidate.origin.repairs, 2);
  ASSERT_TRUE(back->incumbent && back->energy);
  EXPECT_EQ(back->energy->windows, 5);
  EXPECT_FALSE(back->counters_above);
  EXPECT_TRUE(back->variant);
  EXPECT_FALSE(order_from_json("{}")) << "no candidate";
  EXPECT_FALSE(order_from_json("{\"candidate\": 3}"));
  EXPECT_FALSE(order_from_json("not JSON"));
  // To confirm against nothing is not an order.
  order.incumbent.reset();
  EXPECT_FALSE(order_from_json(order_to_json(order)));
}

TEST(Station, AnOrderForBaselinesSurvivesTheWire) {
  const BaselineOrder order{false, 0.5, 20, false};
  const auto back = baseline_order_from_json(baseline_order_to_json(order));
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->compiled);
  EXPECT_EQ(back->seconds, 0.5);
  EXPECT_EQ(back->timeout_s, 20);
  EXPECT_FALSE(back->cached);
  const auto usual = baseline_order_from_json("{}");
  ASSERT_TRUE(usual);
  EXPECT_EQ(baseline_order_to_json(*usual), baseline_order_to_json({}));
  EXPECT_FALSE(baseline_order_from_json("3"));
}

TEST(Station, OneThatOnlyCompilesTimesNoPyTorch) {
  Opened opened(fake_station(by_v()));
  const auto refused = opened.station().baselines({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
}

TEST(Station, SettingsSurviveTheWire) {
  StationSettings s;
  s.target = TargetKind::kCuda;
  s.timeout_s = 2.5;
  s.objective = *objective_from_text("energy");
  s.policy = Policy::kKernelBench;
  s.probes = s.timing = false;
  s.redraw = s.profile_each = true;
  s.gpu = "1";
  s.gpus = {"1", "0"};
  s.python = "/opt/python/bin/python3";
  s.candidates = false;
  s.include_dirs = {"/opt/cutlass"};
  s.counters = CounterSet::kFull;
  s.jobs = 2;
  s.modules_ahead = 3;
  s.evaluations = 4;
  s.standby = 5;
  s.probes_each = 6;
  const std::string text = station_settings_to_json(s);
  const auto back = station_settings_from_json(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(station_settings_to_json(*back), text);
  EXPECT_EQ(back->standby, 5);
  EXPECT_EQ(back->probes_each, 6);
  EXPECT_TRUE(back->redraw);
  EXPECT_FALSE(back->timing);
  const auto usual = station_settings_from_json("{}");
  ASSERT_TRUE(usual);
  EXPECT_EQ(station_settings_to_json(*usual), station_settings_to_json(StationSettings()));
  for (const char* damaged : {"", "[]", "{\"target\": \"tpu\"}", "{\"gpus\": 3}"}) {
    EXPECT_FALSE(station_settings_from_json(damaged)) << damaged;
  }
}

// Orders that only inspect need neither an evaluator nor a prepared station.
TEST(Station, InspectsWithoutRunning) {
  FakeSettings fake = by_v();
  fake.before_evaluate = [] { ADD_FAILURE() << "it was run"; };
  const auto without_evaluator = [fake](const Task& task, const StationSettings& settings) {
    auto target = fake_target(fake)(task, settings);
    target->evaluator.reset();
    return target;
  };
  const Task task = fake_task();
  const Stations stations = local_stations(without_evaluator)(task, StationSettings());
  ASSERT_TRUE(stations.front());
  Order order = order_of("4");
  order.inspect = true;
  const auto back = order_from_json(order_to_json(order));
  ASSERT_TRUE(back && back->inspect);
  const auto inspected = (*stations.front())->measure(*back, {});
  ASSERT_TRUE(inspected) << inspected.error().text();
  EXPECT_FALSE(inspected->evaluation);
  EXPECT_TRUE(inspected->evidence.get("task.compulsory_bytes"));
  const Missing* why = why_missing(inspected->evidence, "timing.median");
  ASSERT_NE(why, nullptr);
  EXPECT_TRUE(contains(why->reason, "not run")) << why->reason;
  order.candidate = candidate("16");
  const auto broken = (*stations.front())->measure(order, {});
  ASSERT_TRUE(broken && broken->evaluation);
  EXPECT_TRUE(std::holds_alternative<CompileError>(broken->evaluation->outcome));
}

// A reference that does not compile is found before the evaluator runs any.
TEST(Station, BuildsTheReferences) {
  struct Recorder : testing::FakeEvaluator {
    explicit Recorder(References* to) : FakeEvaluator(FakeSettings()), to_(to) {}
    Result<void> prepare(const References& references) override {
      *to_ = references;
      return {};
    }
    References* to_;
  };
  struct Picky : testing::FakeCompiler {
    explicit Picky(std::string wrong) : FakeCompiler(by_v().landscape), wrong_(std::move(wrong)) {}
    CompileResult compile_reference(const Task&, const Case& c) override {
      if (c.name == wrong_) return CompileError{"nonsense"};
      Binary binary;
      binary.case_name = c.name;
      return binary;
    }
    std::string wrong_;
  };
  const Task task = fake_task();
  References seen;
  const auto prepare = [&](const std::string& wrong) {
    const auto maker = [&](const Task& its, const StationSettings& settings) {
      auto target = fake_target(by_v())(its, settings);
      target->compiler = std::make_shared<Picky>(wrong);
      target->evaluator = std::make_unique<Recorder>(&seen);
      return target;
    };
    const Stations stations = local_stations(maker)(task, StationSettings());
    return (*stations.front())->prepare();
  };
  ASSERT_TRUE(prepare(""));
  ASSERT_EQ(seen.binaries.size(), task.cases.size());
  EXPECT_EQ(seen.binaries.back().case_name, task.cases.back().name);
  EXPECT_FALSE(seen.host);
  const Result<void> refused = prepare(task.cases.back().name);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kTask);
  EXPECT_TRUE(contains(refused.error().message,
                       "reference.cpp does not compile for case " + task.cases.back().name))
      << refused.error().message;
}

TEST(Station, WhatWasMeasuredSurvivesTheWire) {
  Opened opened(fake_station(by_v()));
  auto measured = opened.station().measure(order_of("4", "1"), {});
  ASSERT_TRUE(measured) << measured.error().text();
  measured->labels = {"float64-at-reduced-case"};
  const std::string text = measured_to_json(*measured);
  const auto back = measured_from_json(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(measured_to_json(*back), text);
  ASSERT_TRUE(back->evaluation && back->evaluation->correct()->versus);
  EXPECT_DOUBLE_EQ(back->evaluation->correct()->versus->ratio, 4);
  EXPECT_EQ(back->evidence.get("timing.median"), 25);
  EXPECT_EQ(back->labels, measured->labels);
  EXPECT_FALSE(contains(text, cache_dir())) << "a path of this machine";
}

TEST(Station, ABuildSaysHowItEnded) {
  Opened opened(fake_station(by_v()));
  const auto fine = opened.station().build(candidate("4"));
  ASSERT_TRUE(fine) << fine.error().text();
  EXPECT_EQ(fine->candidate, candidate("4").content_hash());
  EXPECT_FALSE(fine->error);
  const auto broken = opened.station().build(candidate("16"));
  ASSERT_TRUE(broken && broken->error);
  const auto back = built_from_json(built_to_json(*broken));
  ASSERT_TRUE(back && back->error);
  EXPECT_EQ(back->error->log, broken->error->log);
  const auto measured = opened.station().measure(order_of("16", "1"), {});
  ASSERT_TRUE(measured && measured->evaluation);
  EXPECT_TRUE(std::holds_alternative<CompileError>(measured->evaluation->outcome));
}

// The compiler behind the fake target, counted.
class Counted : public testing::FakeCompiler {
 public:
  Counted(testing::Landscape landscape, std::atomic<int>* calls)
      : FakeCompiler(std::move(landscape)), calls_(calls) {}
  CompileResult compile(const Task& task, const Case& c, const Candidate& candidate) override {
    ++*calls_;
    if (candidate.knobs.at("V") == "1" && *calls_ == 1) {
      return fail(ErrorKind::kEnvironment, "the disk is full", "make room");
    }
    return FakeCompiler::compile(task, c, candidate);
  }

 private:
  std::atomic<int>* calls_;
};

StationMaker counted(std::atomic<int>* calls) {
  return local_stations([calls](const Task& task, const StationSettings& settings) {
    auto target = fake_target(by_v())(task, settings);
    target->compiler = std::make_shared<Counted>(by_v().landscape, calls);
    return target;
  });
}

TEST(Station, WhatWasBuiltAheadIsNotBuiltAgain) {
  std::atomic<int> calls{0};
  Opened opened(counted(&calls));
  std::promise<void> done;
  const Building building = opened.station().begin(candidate("4"), [&] { done.set_value(); });
  done.get_future().wait();
  ASSERT_TRUE(building.get());
  const int once = calls;
  EXPECT_GT(once, 0);
  ASSERT_TRUE(opened.station().measure(order_of("4"), {}));
  ASSERT_TRUE(opened.station().measure(order_of("2", "4"), {}));
  ASSERT_TRUE(opened.station().measure(order_of("2", "4"), {}));
  EXPECT_EQ(calls, 2 * once) << "the incumbent is kept too";
}

TEST(Station, AFaultOfTheMachineIsNotKept) {
  std::atomic<int> calls{0};
  Opened opened(counted(&calls));
  EXPECT_FALSE(opened.station().build(candidate("1")));
  EXPECT_TRUE(opened.station().build(candidate("1"))) << "there is room now";
}

TEST(Station, AnIncumbentThatNoLongerCompilesIsTheMachinesFault) {
  Opened opened(fake_station(by_v()));
  const auto measured = opened.station().measure(order_of("4", "16"), {});
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().kind, ErrorKind::kEnvironment);
}

TEST(Station, ItselfIsNoIncumbent) {
  Opened opened(fake_station(by_v()));
  const auto measured = opened.station().measure(order_of("4", "4"), {});
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->evaluation->correct()->versus);
}

TEST(Station, CancelledThereIsNoEvaluation) {
  std::atomic<bool> cancel{false};
  FakeSettings fake = by_v();
  fake.before_evaluate = [&] { cancel = true; };
  Opened opened(fake_station(fake));
  const CancelScope scope(&cancel);
  const auto measured = opened.station().measure(order_of("4"), {});
  ASSERT_TRUE(measured);
  EXPECT_FALSE(measured->evaluation);
}

TEST(Station, BuildsThatNobodyWaitsForAreDropped) {
  std::atomic<int> calls{0};
  Opened opened(counted(&calls));
  for (const char* v : {"2", "4", "8"}) opened.station().begin(candidate(v), {});
  opened.station().drop_builds();
  const int built = calls;
  EXPECT_TRUE(opened.station().build(candidate("32")));
  EXPECT_EQ(calls - built, 2) << "one for each case; nothing else is under way";
}

}  // namespace
}  // namespace kernelpro
