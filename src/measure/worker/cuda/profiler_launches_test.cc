// SPDX-License-Identifier: Apache-2.0
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/profiler_launches.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

PlanNode kernel(const std::string& function, unsigned blocks) {
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.function = function;
  node.grid = {blocks, 1, 1};
  return node;
}

using Indices = std::vector<int>;

TEST(PlanOrder, PutsNodesAfterWhatTheyWaitFor) {
  LaunchPlan plan;
  plan.nodes = {kernel("c", 1), kernel("a", 1), PlanNode(), kernel("b", 1)};
  plan.edges = {{1, 3, 0, 0, 0}, {3, 0, 0, 0, 0}, {1, 2, 0, 0, 0}};
  EXPECT_EQ(plan_order(plan), (Indices{1, 2, 3, 0}));
  plan.edges.clear();
  EXPECT_EQ(plan_order(plan), (Indices{0, 1, 2, 3}));
}

TEST(ChosenLaunches, AreAllKernelsWhereTheyAreFew) {
  LaunchPlan plan;
  plan.nodes = {kernel("a", 1), PlanNode(), kernel("b", 1), kernel("a", 2)};
  plan.edges = {{3, 0, 0, 0, 0}};
  EXPECT_EQ(chosen_launches(plan, 64), (Indices{2, 3, 0}));
}

TEST(ChosenLaunches, AreTheFirstOfEachAndThenTheLargest) {
  LaunchPlan plan;
  for (unsigned i = 0; i < 100; ++i) plan.nodes.push_back(kernel("many", 1 + i % 7));
  plan.nodes.push_back(kernel("last", 1));
  for (std::size_t i = 0; i + 1 < plan.nodes.size(); ++i) {
    plan.edges.push_back({static_cast<int>(i), static_cast<int>(i + 1), 0, 0, 0});
  }
  // The first of "many", the only "last", and two of those with seven blocks.
  EXPECT_EQ(chosen_launches(plan, 4), (Indices{0, 6, 13, 100}));
  EXPECT_EQ(chosen_launches(plan, 64).size(), 64u);
  EXPECT_EQ(chosen_launches(plan, 1).size(), 1u);
}

TEST(ChosenLaunches, AreTheLongestOfEachWhereTimesAreKnown) {
  LaunchPlan plan;
  std::vector<double> us;
  for (unsigned i = 0; i < 40; ++i) {
    plan.nodes.push_back(kernel(i % 2 == 0 ? "short" : "long", 1000 - i));
    us.push_back(i % 2 == 0 ? 1 : 10 + i);
  }
  plan.nodes.push_back(kernel("last", 1));
  us.push_back(500);
  for (std::size_t i = 0; i + 1 < plan.nodes.size(); ++i) {
    plan.edges.push_back({static_cast<int>(i), static_cast<int>(i + 1), 0, 0, 0});
  }
  EXPECT_EQ(chosen_launches(plan, 4, us), (Indices{0, 37, 39, 40})) << "one of each comes first";
  EXPECT_EQ(chosen_launches(plan, 12, us).size(), 9u) << "no more than four of a kernel";
}

TEST(TimedLaunches, AreLessWhatAStartCosts) {
  LaunchPlan plan;
  plan.nodes = {kernel("a", 1), PlanNode(), kernel("b", 1), kernel("a", 1)};
  plan.edges = {{0, 1, 0, 0, 0}, {1, 2, 0, 0, 0}, {2, 3, 0, 0, 0}};
  std::vector<LaunchCounters> launches = {
      {"a", 0, {{"gpu__time_duration.sum", 8000}, {"dram__bytes_read.sum", 1}}}};
  add_timed_launches(plan, {10, 3, 5, 1}, &launches);
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[1].function, "b");
  EXPECT_EQ(launches[1].node, 2);
  EXPECT_EQ(launches[1].values.size(), 1u);
  EXPECT_DOUBLE_EQ(launches[1].values.at("gpu__time_duration.sum"), 3000);
  EXPECT_DOUBLE_EQ(launches[2].values.at("gpu__time_duration.sum"), 100)
      << "no longer than a start";
  launches.resize(1);
  add_timed_launches(plan, {}, &launches);
  EXPECT_EQ(launches.size(), 1u) << "nothing is known of the others";
}

// Which of many equal launches were counted is chance: they seemed the longest.
TEST(TimedLaunches, ALuckyChoiceDoesNotTellWhatAStartTakes) {
  LaunchPlan plan;
  std::vector<double> us;
  for (int i = 0; i < 8; ++i) {
    plan.nodes.push_back(kernel("a", 1));
    us.push_back(i == 3 ? 30 : 6);
  }
  std::vector<LaunchCounters> launches = {{"a", 3, {{"gpu__time_duration.sum", 4000}}}};
  add_timed_launches(plan, us, &launches);
  ASSERT_EQ(launches.size(), 8u);
  EXPECT_DOUBLE_EQ(launches[1].values.at("gpu__time_duration.sum"), 4000);
}

}  // namespace
}  // namespace kernelpro

#endif
