// SPDX-License-Identifier: Apache-2.0
#include "run/store/tool_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "run/store/store.h"

namespace kernelpro {
namespace {

Known parent() {
  Known known;
  known.id = 1;
  known.diagnosis.record = "abc";
  Finding finding;
  finding.tool = "scalar-loads";
  finding.likely_speedup = 1.5;
  finding.upper_speedup = 2.5;
  known.diagnosis.findings.push_back(finding);
  return known;
}

Known child(const std::string& answers) {
  Known known;
  known.id = 7;
  known.candidate.origin = {"tuner", 1, "an idea", FindingRef::parse(answers)};
  known.evaluation.outcome = WrongResult();
  return known;
}

TEST(ToolStep, NamesTheFindingOfItsParent) {
  const auto step = tool_step(parent(), child("scalar-loads: vectorize"), 30, 20);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->candidate, 7);
  EXPECT_EQ(step->tool, "scalar-loads");
  EXPECT_EQ(step->tag, "vectorize");
  EXPECT_DOUBLE_EQ(step->likely, 1.5);
  EXPECT_DOUBLE_EQ(step->upper, 2.5);
  EXPECT_DOUBLE_EQ(step->measured, 1.5);
  EXPECT_EQ(step->record, "abc");
}

TEST(ToolStep, WithoutATagAndNotCorrect) {
  const auto step = tool_step(parent(), child("scalar-loads"), 30, 0);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->tag, "");
  EXPECT_EQ(step->measured, 0);
}

TEST(ToolStep, NothingThatNoFindingPromised) {
  EXPECT_FALSE(tool_step(parent(), child(""), 30, 20));
  EXPECT_FALSE(tool_step(parent(), child("register-spill: registers"), 30, 20));
  EXPECT_FALSE(tool_step(parent(), child("scalar-loads: vectorize"), 0, 20));
  Known broken = child("scalar-loads: vectorize");
  broken.evaluation.outcome = CompileError{"kernel.cu(3): error"};
  EXPECT_FALSE(tool_step(parent(), broken, 30, 0));
}

struct RecordTest : ::testing::Test {
  TempDir dir;
  std::string path = join(dir.path(), "state/tools.json");
  ToolStep step{1, "scalar-loads", "vectorize", 1.5, 2.5, 1.2, ""};
};

TEST_F(RecordTest, GrowsByStepsOfSeveralWriters) {
  EXPECT_EQ(read_record(path, false)->tools.size(), 0u);
  EXPECT_FALSE(read_record(path, true));
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int k = 0; k < 10; ++k) EXPECT_TRUE(add_to_record(path, step));
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto record = read_record(path, true);
  ASSERT_TRUE(record) << record.error().text();
  EXPECT_EQ(record->tools.at("scalar-loads").tried, 40);
  EXPECT_EQ(record->tools.at("scalar-loads").hits, 40);
  EXPECT_NEAR(record->tools.at("scalar-loads").mean_gain(), 1.2, 1e-9);
}

TEST_F(RecordTest, AnotherVersionsFileIsLeftAlone) {
  const std::string newer = "{\"version\": 99, \"tools\": {}}";
  ASSERT_TRUE(make_dirs(dirname(path)));
  ASSERT_TRUE(write_file(path, newer));
  EXPECT_FALSE(read_record(path, false));
  EXPECT_FALSE(add_to_record(path, step));
  EXPECT_EQ(*read_file(path), newer);
}

TEST_F(RecordTest, LivesInTheStateFolder) {
  ::setenv("KERNELPRO_STATE", dir.path().c_str(), 1);
  EXPECT_EQ(user_record_path(), join(dir.path(), "tools.json"));
  ::unsetenv("KERNELPRO_STATE");
}

TEST(Hash, TellsRecordsApart) {
  ToolRecord record;
  EXPECT_EQ(record.hash(), "");
  record.add("scalar-loads", 1.5, 1.2);
  const std::string first = record.hash();
  EXPECT_FALSE(first.empty());
  record.add("scalar-loads", 1.5, 1.2);
  EXPECT_NE(record.hash(), first);
}

// The whole loop: steps are stored, counted into the run's own record and the user's.
struct RunRecordTest : RecordTest {
  std::string run = join(dir.path(), "run");

  RunSettings settings(const std::string& record) {
    RunSettings s;
    s.directory = run;
    s.max_evaluations = 25;
    s.near_ceiling = 0;
    s.record = record;
    return s;
  }
  StationMaker maker() {
    testing::FakeSettings fake;
    fake.landscape = testing::smooth_landscape;
    return testing::fake_station(fake);
  }
  std::vector<ToolStep> steps() {
    const auto store = Store::open(run, Store::Mode::kRead);
    EXPECT_TRUE(store);
    const auto all = (*store)->tool_steps();
    EXPECT_TRUE(all);
    return *all;
  }
};

TEST_F(RunRecordTest, StepsAreStoredAndCounted) {
  ASSERT_TRUE(optimize_with(maker(), testing::fake_task(), settings(path), {}));
  const std::vector<ToolStep> all = steps();
  ASSERT_FALSE(all.empty());
  ToolRecord expected;
  for (const ToolStep& each : all) {
    EXPECT_GE(each.likely, 1);
    EXPECT_GE(each.upper, each.likely);
    expected.add(each.tool, each.likely, each.measured);
  }
  const auto record = read_record(path, true);
  ASSERT_TRUE(record) << record.error().text();
  EXPECT_EQ(record->hash(), expected.hash());
  // Later promises were made with a record, and name it.
  EXPECT_FALSE(all.back().record.empty());
}

TEST_F(RunRecordTest, WithoutARecordNothingIsTouched) {
  ASSERT_TRUE(optimize_with(maker(), testing::fake_task(), settings(""), {}));
  EXPECT_FALSE(steps().empty());
  EXPECT_FALSE(exists(path));
}

TEST_F(RunRecordTest, AResumedRunEndsAsTheFirstWouldHave) {
  ASSERT_TRUE(optimize_with(maker(), testing::fake_task(), settings(""), {}));
  const std::vector<ToolStep> whole = steps();
  run = join(dir.path(), "in-two");
  RunSettings half = settings("");
  half.max_evaluations = 11;
  ASSERT_TRUE(optimize_with(maker(), testing::fake_task(), half, {}));
  half.max_evaluations = 25;
  ASSERT_TRUE(resume_with(maker(), run, &half, {}));
  const std::vector<ToolStep> resumed = steps();
  ASSERT_EQ(resumed.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(resumed[i].tool, whole[i].tool) << i;
    EXPECT_DOUBLE_EQ(resumed[i].likely, whole[i].likely) << i;
    EXPECT_EQ(resumed[i].record, whole[i].record) << i;
  }
}

}  // namespace
}  // namespace kernelpro
