// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/turns.h"

#include <algorithm>
#include <cmath>

#include "core/evaluation/load.h"

namespace kernelpro {

namespace {

constexpr double kTurnNs = 4e6;         // shorter calls have several to a turn, on several sets
constexpr double kEnoughCalls = 8;      // more of them only where little comes around them
constexpr double kLongestTurnNs = 4e7;  // of the slower side
constexpr double kTypical = 0.25;       // quantile of orders

}  // namespace

double typical_order(std::vector<double> orders_ns) {
  const auto at = orders_ns.begin() +
                  static_cast<std::ptrdiff_t>(kTypical * static_cast<double>(orders_ns.size()));
  std::nth_element(orders_ns.begin(), at, orders_ns.end());
  return *at;
}

double own_ns(const MeasuredTurn& taken, const OrderCost& order) {
  const double saved = std::max(0.0, taken.calls * order.wall_ns - taken.others_cpu_ns);
  const double first_cpu_ns = taken.cpu_ns - taken.others_cpu_ns;
  return std::max(taken.wall_ns - saved, first_cpu_ns - taken.calls * order.cpu_ns);
}

int calls_per_turn(double candidate_ns, double incumbent_ns, double around_ns, int most) {
  const double slowest = std::max(candidate_ns, incumbent_ns);
  const double fastest = incumbent_ns > 0 ? std::min(candidate_ns, incumbent_ns) : candidate_ns;
  const double wanted = std::ceil(kTurnNs / (fastest + kAroundCallNs));
  const double paid_for = std::ceil(kTurnNs / (fastest + std::max(around_ns, kAroundCallNs)));
  const double calls =
      std::min(std::max(paid_for, std::min(wanted, kEnoughCalls)), kLongestTurnNs / slowest);
  return static_cast<int>(std::clamp(calls, 1.0, static_cast<double>(most)));
}

bool much_too_short(int calls, int wanted) { return wanted > 2 * calls; }

double least_ns(const MeasuredTurn& taken, int threads) {
  if (taken.foreign <= kBusyShare) return taken.wall_ns;
  const double late = std::min(taken.waited_ns, taken.foreign * taken.wall_ns * threads);
  return std::min(taken.wall_ns, std::max(taken.wall_ns - late, taken.cpu_ns / threads));
}

}  // namespace kernelpro
