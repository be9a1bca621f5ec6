// SPDX-License-Identifier: Apache-2.0
// What is profiled, and when: parents that no counters were collected for, once a writer is to work
// on them; and what may be screened.
#include <gtest/gtest.h>

#include "base/files.h"
#include "measure/station/testing/fake_target.h"
#include "run/bench.h"

namespace kernelpro {
namespace {

using testing::fake_station;
using testing::fake_task;
using testing::FakeSettings;
using testing::knob;

class BenchProfile : public ::testing::Test {
 protected:
  void open(const FakeSettings& fake, bool asked_elsewhere = false) {
    task_ = fake_task();
    task_.kernel_cu = task_.kernel_cpp;
    settings_.directory = join(dir_.path(), "run");
    settings_.target = TargetKind::kCuda;
    settings_.counters = CounterSet::kFull;
    auto stations = fake_station(fake)(task_, settings_);
    ASSERT_TRUE(stations.front()) << stations.front().error().text();
    station_ = std::move(*stations.front());
    ASSERT_TRUE(station_->prepare());
    RunHeader header;
    header.task = task_;
    header.target = settings_.target;
    header.machine = station_->machine();
    header.settings_json = settings_to_json(settings_);
    header.record_json = record_to_json({});
    auto store = Store::open(settings_.directory, Store::Mode::kCreate, &header);
    ASSERT_TRUE(store) << store.error().text();
    store_ = std::move(*store);
    BenchParts parts;
    parts.task = &task_;
    parts.settings = &settings_;
    parts.store = store_.get();
    parts.station = station_.get();
    parts.machine = &station_->machine();
    parts.elapsed_s = [this] { return elapsed_s_; };
    parts.asked_elsewhere = asked_elsewhere;
    bench_ = std::make_unique<Bench>(std::move(parts));
  }

  std::int64_t put(const std::string& v, const std::string& more = "") {
    Candidate candidate;
    candidate.source = task_.kernel_cu + more;
    candidate.language = Language::kCuda;
    candidate.knobs = {{"V", v}, {"T", "4"}, {"C", "64"}, {"S", "1"}, {"U", "2"}};
    const auto ids = store_->add({candidate});
    EXPECT_TRUE(ids) << ids.error().text();
    Known known;
    known.id = ids->front();
    known.candidate = candidate;
    const auto verdict = bench_->evaluate(std::move(known));
    EXPECT_TRUE(verdict && *verdict);
    return ids->front();
  }

  static FakeSettings smooth() {
    FakeSettings fake;
    fake.landscape = testing::smooth_landscape;
    return fake;
  }

  // Whether it may be screened.
  bool variant(const std::string& v, const std::string& more = "") {
    Known known;
    known.id = 1000;
    known.candidate.source = task_.kernel_cu + more;
    known.candidate.language = Language::kCuda;
    known.candidate.knobs = {{"V", v}};
    const auto begun = bench_->begin(known, Built{known.candidate.content_hash(), v + more, {}, 0});
    bench_->forget(known.id);
    const Order* order = begun ? std::get_if<Order>(&*begun) : nullptr;
    EXPECT_NE(order, nullptr);
    return order != nullptr && order->variant;
  }

  bool counted(std::int64_t id) {
    const auto stored = store_->candidate(id, true);
    EXPECT_TRUE(stored) << stored.error().text();
    return stored->evidence.get("dram__bytes_read.sum").has_value();
  }

  TempDir dir_;
  Task task_;
  RunSettings settings_;
  std::unique_ptr<Station> station_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Bench> bench_;
  double elapsed_s_ = 0;
};

TEST_F(BenchProfile, ASlowerCandidateIsProfiledOnceItIsAParent) {
  FakeSettings fake;
  fake.landscape = testing::smooth_landscape;
  fake.counters = true;
  open(fake);
  const std::int64_t best = put("8");
  const std::int64_t other = put("1");
  EXPECT_TRUE(counted(best));
  EXPECT_FALSE(counted(other)) << "counters cost time: a candidate that is slower gets none";

  const auto changed = bench_->profile(other, station_.get());
  ASSERT_TRUE(changed) << changed.error().text();
  EXPECT_TRUE(*changed);
  EXPECT_TRUE(counted(other));
  EXPECT_GT(bench_->ledger().find(other)->diagnosis.fraction_of_ceiling, 0);
  EXPECT_FALSE(*bench_->profile(other, station_.get())) << "once is enough";
  EXPECT_FALSE(*bench_->profile(best, station_.get())) << "it has counters";
}

// `propose` may choose any of these as a parent, where no GPU is at hand.
TEST_F(BenchProfile, WhoeverIsAboutAsFastIsProfiledWhereQuestionsAreAskedElsewhere) {
  FakeSettings fake;
  fake.landscape = [](const KnobValues& knobs) {
    return knob(knobs, "V") == 8 ? 100.0 : knob(knobs, "V") == 4 ? 102.0 : 150.0;
  };
  fake.counters = true;
  open(fake, true);
  EXPECT_TRUE(counted(put("8")));
  EXPECT_TRUE(counted(put("4", "\n// another source"))) << "nearly as fast as the best";
  EXPECT_FALSE(counted(put("1", "\n// a third")));
}

TEST_F(BenchProfile, SettingsAreProfiledOnceTheTunerIsDone) {
  FakeSettings fake = smooth();
  fake.counters = true;
  open(fake, true);
  const std::int64_t start = put("1"), better = put("4"), best = put("8");
  const std::int64_t other = put("8", "\n// another source");
  EXPECT_TRUE(counted(start) && counted(other));
  EXPECT_FALSE(counted(better)) << "a setting on the way";
  EXPECT_FALSE(counted(best));
  const auto done = bench_->profile_leaders(station_.get());
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(counted(best)) << "the next question may be about it";
  EXPECT_FALSE(counted(better));
}

TEST_F(BenchProfile, OnlyASettingOfASourceThatWasJudgedIsScreened) {
  open(smooth());
  EXPECT_FALSE(variant("8")) << "nothing was judged";
  put("4");
  EXPECT_TRUE(variant("8"));
  EXPECT_FALSE(variant("8", "\n// another source"));
}

TEST_F(BenchProfile, NoSettingIsScreenedWhereSlowerMayBeBetter) {
  open(smooth());
  put("4");
  ASSERT_TRUE(variant("8"));
  settings_.objective = kLeastEnergy;
  EXPECT_FALSE(variant("8")) << "it may need less energy";
  settings_.objective = {};
  settings_.profile_each = true;
  EXPECT_FALSE(variant("8")) << "all are timed in full";
  settings_.profile_each = false;
  task_.cases.push_back(task_.cases.back());
  EXPECT_FALSE(variant("8")) << "it may win in the other case";
}

TEST_F(BenchProfile, NoSettingIsScreenedWhereTheBestKeepsTheContractInPart) {
  FakeSettings fake;
  fake.landscape = [](const KnobValues& knobs) { return knob(knobs, "V") == 1 ? -1.0 : 100.0; };
  fake.labels = {"given-distribution-only"};
  open(fake);
  put("1");  // the start, wrong: no label is the task's own
  put("4");
  EXPECT_FALSE(variant("8")) << "without probes it would have no label, and pass the best";
}

TEST_F(BenchProfile, AMachineWithoutCountersIsAskedOnce) {
  FakeSettings fake;
  int built = 0;
  fake.landscape = [&](const KnobValues& knobs) {
    ++built;
    return testing::smooth_landscape(knobs);
  };
  open(fake);
  put("8");
  const std::int64_t other = put("1", "\n// another source");
  EXPECT_FALSE(*bench_->profile(other, station_.get()));
  const int before = built;
  EXPECT_FALSE(*bench_->profile(other, station_.get()));
  EXPECT_EQ(built, before);
}

// Without counters there is still its machine code to read.
TEST_F(BenchProfile, ASettingThatWasScreenedHasADiagnosisOnceItIsAParent) {
  open(smooth());
  put("8");
  const std::int64_t slower = put("4");
  EXPECT_EQ(bench_->ledger().find(slower)->diagnosis.fraction_of_ceiling, 0);
  EXPECT_TRUE(*bench_->profile(slower, station_.get()));
  EXPECT_GT(bench_->ledger().find(slower)->diagnosis.fraction_of_ceiling, 0);
  EXPECT_FALSE(*bench_->profile(slower, station_.get()));
}

TEST_F(BenchProfile, WrongCandidatesAreNotProfiled) {
  FakeSettings fake;
  fake.landscape = [](const KnobValues& knobs) { return knob(knobs, "V") == 1 ? -1.0 : 100.0; };
  fake.counters = true;
  open(fake);
  put("8");
  EXPECT_FALSE(*bench_->profile(put("1"), station_.get()));
}

}  // namespace
}  // namespace kernelpro
