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

}  // namespace
}  // namespace kernelpro

#endif
