// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace kernelpro {
namespace {

LaunchPlan plan_of(int nodes, const std::vector<std::pair<int, int>>& edges) {
  LaunchPlan plan;
  for (int i = 0; i < nodes; ++i) {
    plan.nodes.emplace_back().kind = PlanNode::Kind::kKernel;
    plan.nodes.back().function = "k" + std::to_string(i);
  }
  for (const auto& [from, to] : edges) plan.edges.push_back({from, to, 1, 0, 1});
  return plan;
}

std::vector<int> order_of(const LaunchPlan& serial) {
  EXPECT_TRUE(serial.nodes.size() == 1 || serial.one_after_another());
  std::vector<int> order;
  if (!serial.edges.empty()) order.push_back(serial.edges[0].from);
  for (const PlanEdge& edge : serial.edges) order.push_back(edge.to);
  return order;
}
bool before(const std::vector<int>& order, int a, int b) {
  return std::find(order.begin(), order.end(), a) < std::find(order.begin(), order.end(), b);
}

// A fork of three branches, of which one forks again, and a join.
const std::vector<std::pair<int, int>> kBrackets = {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {3, 5}, {4, 6},
                                                    {5, 6}, {0, 7}, {2, 8}, {6, 8}, {7, 8}};

TEST(SomeOrder, KeepsEveryEdge) {
  const LaunchPlan plan = plan_of(9, kBrackets);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const bool mirrored : {false, true}) {
      const LaunchPlan serial = in_some_order(plan, seed, mirrored);
      const std::vector<int> order = order_of(serial);
      ASSERT_EQ(order.size(), 9u);
      for (const auto& [from, to] : kBrackets) EXPECT_TRUE(before(order, from, to));
      EXPECT_EQ(serial.nodes[3].function, "k3");
      EXPECT_EQ(serial.problem(), "");
    }
  }
}

TEST(SomeOrder, AndItsMirrorTurnRoundWhateverNoEdgeOrders) {
  const LaunchPlan plan = plan_of(9, kBrackets);
  const std::pair<int, int> free[] = {{1, 3}, {2, 6}, {1, 7}, {4, 5}, {2, 4}, {7, 5}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int> one = order_of(in_some_order(plan, seed, false));
    const std::vector<int> other = order_of(in_some_order(plan, seed, true));
    for (const auto& [a, b] : free) EXPECT_NE(before(one, a, b), before(other, a, b));
  }
}

TEST(SomeOrder, DependsOnItsSeed) {
  const LaunchPlan plan = plan_of(12, {});
  std::set<std::vector<int>> all;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    all.insert(order_of(in_some_order(plan, seed, false)));
  }
  EXPECT_EQ(all.size(), 20u);
  EXPECT_TRUE(in_some_order(plan_of(1, {}), 7, true).edges.empty());
}

TEST(SomeOrder, OfALongChainTakesNoStack) {
  std::vector<std::pair<int, int>> chain;
  for (int i = 1; i < 100'000; ++i) chain.emplace_back(i - 1, i);
  EXPECT_EQ(order_of(in_some_order(plan_of(100'000, chain), 1, false)).back(), 99'999);
}

}  // namespace
}  // namespace kernelpro
