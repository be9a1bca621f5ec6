// SPDX-License-Identifier: Apache-2.0
#include "report/trajectories.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "core/json.h"
#include "measure/station/testing/fake_target.h"
#include "run/store/store.h"

namespace kernelpro {
namespace {

Evaluation correct(double us) {
  Evaluation evaluation;
  Correct result;
  result.timings = {{"large", us, us, us, 40, "calls in turn"}};
  evaluation.outcome = result;
  return evaluation;
}

Proposal proposal(int number, std::int64_t parent) {
  Proposal p;
  p.candidate.source = "void launch() {} // " + std::to_string(number);
  p.candidate.origin = {"exchange", parent, "idea " + std::to_string(number), {}};
  return p;
}

TEST(Trajectories, HoldWhatWasAskedAnsweredAndMeasured) {
  TempDir dir;
  RunHeader header;
  header.task = testing::fake_task();
  header.task.name = "axpy";
  header.machine.name = "a machine";
  header.machine.target = "cpu";
  header.settings_json = "{}";
  {
    auto store = Store::open(dir.path(), Store::Mode::kCreate, &header);
    ASSERT_TRUE(store) << store.error().text();
    Proposal written = proposal(2, 1);
    written.writing =
        Writing{"0001", "exchange", "make \"it\" fast\n", "void launch() {}", "{\"output\": 12}"};
    const auto start = (*store)->add_proposals({proposal(1, 0)});
    ASSERT_TRUE(start);
    ASSERT_TRUE((*store)->finish(1, correct(100), {}, {}, 1));
    ASSERT_TRUE((*store)->add_proposals({written, proposal(3, 2), proposal(4, 2)}));
    ASSERT_TRUE((*store)->finish(2, correct(40), {}, {}, 2));
    Evaluation failed;
    failed.outcome = CompileError{"line 1"};
    ASSERT_TRUE((*store)->finish(3, failed, {}, {}, 3));
  }
  const auto all = trajectories(dir.path(), false);
  ASSERT_TRUE(all) << all.error().text();
  const std::vector<std::string> rows = lines(*all);
  ASSERT_EQ(rows.size(), 3u) << "the fourth was not evaluated";
  const auto second = parse_json(rows[1]);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->at("prompt"), "make \"it\" fast\n");
  EXPECT_EQ(second->at("reply"), "void launch() {}");
  EXPECT_EQ(second->at("usage").at("output"), 12);
  EXPECT_EQ(second->at("parent_source"), "void launch() {} // 1");
  EXPECT_DOUBLE_EQ(second->at("speedup_over_parent").get<double>(), 2.5);
  EXPECT_EQ(second->at("run").at("task"), "axpy");
  const auto third = parse_json(rows[2]);
  ASSERT_TRUE(third);
  EXPECT_TRUE(third->at("time_us").is_null());
  EXPECT_TRUE(third->at("prompt").is_null());
  const auto written = trajectories(dir.path(), true);
  ASSERT_TRUE(written);
  EXPECT_EQ(lines(*written).size(), 1u);
  EXPECT_FALSE(trajectories(join(dir.path(), "none"), false));
}

}  // namespace
}  // namespace kernelpro
