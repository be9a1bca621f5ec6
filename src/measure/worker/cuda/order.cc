// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/order.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/task/inputs.h"

namespace kernelpro {

namespace {

// Nodes such that each comes after those that it waits for: the reverse of the order in which a
// depth-first walk leaves them.
std::vector<int> walk(const LaunchPlan& plan, const std::vector<std::uint64_t>& rank) {
  const std::size_t count = plan.nodes.size();
  const auto by_rank = [&](int a, int b) {
    return rank[static_cast<std::size_t>(a)] < rank[static_cast<std::size_t>(b)];
  };
  std::vector<std::vector<int>> after(count);
  std::vector<char> waits(count, false), seen(count, false);
  for (const PlanEdge& edge : plan.edges) {
    after[static_cast<std::size_t>(edge.from)].push_back(edge.to);
    waits[static_cast<std::size_t>(edge.to)] = true;
  }
  for (std::vector<int>& next : after) std::sort(next.begin(), next.end(), by_rank);
  std::vector<int> starts;
  for (std::size_t i = 0; i < count; ++i) {
    if (!waits[i]) starts.push_back(static_cast<int>(i));
  }
  std::sort(starts.begin(), starts.end(), by_rank);
  std::vector<int> order;
  std::vector<std::pair<int, std::size_t>>
      path;  // nodes, and how many of their successors were tried
  for (const int start : starts) {
    path.emplace_back(start, 0);
    seen[static_cast<std::size_t>(start)] = true;
    while (!path.empty()) {
      auto& [node, tried] = path.back();
      const std::vector<int>& next = after[static_cast<std::size_t>(node)];
      if (tried == next.size()) {
        order.push_back(node);
        path.pop_back();
        continue;
      }
      const int to = next[tried++];
      if (std::exchange(seen[static_cast<std::size_t>(to)], true)) continue;
      path.emplace_back(to, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace

LaunchPlan in_some_order(const LaunchPlan& plan, std::uint64_t seed, bool mirrored) {
  std::vector<std::uint64_t> rank;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::uint64_t drawn = kp::mix64(seed + kp::mix64(i));
    rank.push_back(mirrored ? ~drawn : drawn);
  }
  const std::vector<int> order = walk(plan, rank);
  LaunchPlan serial = plan;
  serial.edges.clear();
  for (std::size_t i = 1; i < order.size(); ++i) {
    serial.edges.push_back({order[i - 1], order[i], 0, 0, 0});
  }
  return serial;
}

}  // namespace kernelpro
