// SPDX-License-Identifier: Apache-2.0
#include "profile/collect/counters.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr const char* kTime = "gpu__time_duration.sum";
constexpr const char* kBytes = "dram__bytes_read.sum";
constexpr const char* kShare = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
constexpr const char* kStall =
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio";

PlanNode launch_of(const std::string& function, unsigned blocks) {
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.function = function;
  node.grid = {blocks, 1, 1};
  return node;
}

// Twice k, once l.
LaunchPlan plan() {
  LaunchPlan plan;
  plan.nodes = {launch_of("k", 10), PlanNode(), launch_of("l", 4), launch_of("k", 30)};
  return plan;
}

std::map<std::string, KernelEvidence> kernels() {
  std::map<std::string, KernelEvidence> all;
  all["k"].name = "k";
  all["l"].name = "l";
  return all;
}

CounterAnswers answers() {
  CounterAnswers answers;
  answers.source = "cupti";
  answers.launches = {
      {"k", 0, {{kTime, 1000}, {kBytes, 10}, {kShare, 40}, {kStall, 3}}},
      {"l", 2, {{kTime, 4000}, {kBytes, 7}, {kShare, 90}, {kStall, 1}}},
      {"k", 3, {{kTime, 3000}, {kBytes, 30}, {kShare, 80}, {kStall, 7}}},
  };
  return answers;
}

TEST(MergeCounters, AddsAmountsAndWeighsShares) {
  std::vector<Missing> missing;
  const auto merged = merge_counters(answers(), plan(), &missing);
  EXPECT_TRUE(missing.empty());
  const auto& k = merged.at("k").values;
  EXPECT_DOUBLE_EQ(k.at(kTime), 4000);
  EXPECT_DOUBLE_EQ(k.at(kBytes), 40);
  EXPECT_DOUBLE_EQ(k.at(kShare), (1000 * 40.0 + 3000 * 80.0) / 4000);
  EXPECT_DOUBLE_EQ(k.at(kStall), (1000 * 3.0 + 3000 * 7.0) / 4000);
  EXPECT_DOUBLE_EQ(merged.at("l").values.at(kBytes), 7);
}

TEST(MergeCounters, LaunchesThatWereLeftOutCountByTheirBlocks) {
  CounterAnswers some = answers();
  some.launches.erase(some.launches.begin());  // 10 of k's 40 blocks
  std::vector<Missing> missing;
  const auto merged = merge_counters(some, plan(), &missing);
  EXPECT_DOUBLE_EQ(merged.at("k").values.at(kTime), 4000);
  EXPECT_DOUBLE_EQ(merged.at("k").values.at(kBytes), 40);
  EXPECT_DOUBLE_EQ(merged.at("k").values.at(kShare), 80);
}

TEST(MergeCounters, LeavesOutWhatCannotBe) {
  CounterAnswers odd = answers();
  odd.launches[0].values[kShare] = 400;
  odd.launches[0].values[kBytes] = std::numeric_limits<double>::quiet_NaN();
  odd.launches[1].values[kTime] = 0;
  std::vector<Missing> missing;
  const auto merged = merge_counters(odd, plan(), &missing);
  EXPECT_DOUBLE_EQ(merged.at("k").values.at(kShare), 80);
  EXPECT_DOUBLE_EQ(merged.at("k").values.at(kBytes), 40) << "as the others, by its time";
  EXPECT_FALSE(merged.contains("l"));
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].metrics, (std::vector<std::string>{kBytes, kShare}));

  auto all = kernels();
  add_counters(odd, plan(), &all, &missing);
  EXPECT_EQ(why_missing(all["k"].facts, kTime), nullptr);
  const Missing* untimed = why_missing(all["l"].facts, kTime);
  ASSERT_NE(untimed, nullptr);
  EXPECT_TRUE(contains(untimed->reason, "no time")) << untimed->reason;
}

TEST(AddCounters, GivesSharesWhenAllWereTimed) {
  auto all = kernels();
  std::vector<Missing> missing;
  add_counters(answers(), plan(), &all, &missing);
  EXPECT_DOUBLE_EQ(*all["k"].facts.get("kernel.share"), 0.5);
  EXPECT_DOUBLE_EQ(*all["l"].facts.get("kernel.share"), 0.5);
  EXPECT_EQ(all["k"].facts.find(kBytes)->level, Level::kCounters);
  EXPECT_EQ(all["k"].facts.find(kBytes)->source, "cupti");

  auto part = kernels();
  CounterAnswers some = answers();
  some.launches.erase(some.launches.begin() + 1);
  some.left_out = 1;
  add_counters(some, plan(), &part, &missing);
  EXPECT_FALSE(part["k"].facts.get("kernel.share")) << "a part of an unknown whole";
  ASSERT_FALSE(missing.empty());
  EXPECT_EQ(missing.back().part, "of 1 launches");
}

TEST(AddCounters, TakesNcusReport) {
  CounterAnswers answers;
  answers.source = "ncu";
  answers.report =
      "==PROF== Connected\n"
      "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid "
      "Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\","
      "\"dram__bytes_read.sum\"\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"ns\",\"byte\"\n"
      "\"0\",\"k(float *)\",\"(256, 1, 1)\",\"(10, 1, 1)\",\"0\",\"9.0\",\"1000\",\"640\"\n"
      "\"1\",\"l(int)\",\"(256, 1, 1)\",\"(4, 1, 1)\",\"0\",\"9.0\",\"3000\",\"64\"\n";
  auto all = kernels();
  all["k"].name = "k(float*)";
  all["l"].name = "l(int)";
  std::vector<Missing> missing;
  add_counters(answers, plan(), &all, &missing);
  EXPECT_TRUE(missing.empty());
  EXPECT_DOUBLE_EQ(all["k"].facts.get(kBytes).value_or(0), 640);
  EXPECT_DOUBLE_EQ(all["k"].facts.get("kernel.share").value_or(0), 0.25);
  EXPECT_EQ(all["l"].facts.find(kTime)->source, "ncu");

  answers.report = "==ERROR== ERR_NVGPUCTRPERM\n";
  add_counters(answers, plan(), &all, &missing);
  EXPECT_EQ(missing.size(), 1u);
}

}  // namespace
}  // namespace kernelpro
