// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/block.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "base/error.h"

namespace kernelpro {

double separation_chance(BlockSize size) {
  KP_ASSERT(size.incumbent >= 1 && size.candidate >= 1);
  double chance = 2;
  for (int k = 1; k <= size.incumbent; ++k) {
    chance *= static_cast<double>(k) / (size.candidate + k);
  }
  return chance;
}

BlockSize cheapest_block(double incumbent_s, double candidate_s, double alpha, int most) {
  BlockSize best;
  double least = std::numeric_limits<double>::max();
  for (int n = 1; n <= most; ++n) {
    int m = 1;
    while (m <= most && separation_chance({n, m}) > alpha) ++m;
    if (m > most) continue;
    const double cost = n * incumbent_s + m * candidate_s;
    if (cost < least) {
      least = cost;
      best = {n, m};
    }
    if (m == 1) break;
  }
  if (best.incumbent == 0) best = {most, most};
  return best;
}

std::vector<bool> block_order(BlockSize size, std::uint64_t seed) {
  std::vector<bool> order(static_cast<std::size_t>(size.incumbent + size.candidate), false);
  std::fill_n(order.begin(), size.incumbent, true);
  std::mt19937_64 random(seed);
  for (std::size_t k = order.size(); k-- > 1;) {
    const std::size_t other = std::uniform_int_distribution<std::size_t>(0, k)(random);
    const bool kept = order[k];
    order[k] = order[other];
    order[other] = kept;
  }
  return order;
}

bool separated(const std::vector<double>& incumbent, const std::vector<double>& candidate) {
  const auto [i_low, i_high] = std::minmax_element(incumbent.begin(), incumbent.end());
  const auto [c_low, c_high] = std::minmax_element(candidate.begin(), candidate.end());
  return *i_low > *c_high || *c_low > *i_high;
}

Interval block_ratio(const std::vector<double>& incumbent, const std::vector<double>& candidate) {
  KP_ASSERT(!incumbent.empty() && !candidate.empty());
  const auto [i_low, i_high] = std::minmax_element(incumbent.begin(), incumbent.end());
  const auto [c_low, c_high] = std::minmax_element(candidate.begin(), candidate.end());
  KP_ASSERT(*c_low > 0 && *i_low > 0);
  return {*i_low / *c_high, median(incumbent) / median(candidate), *i_high / *c_low};
}

}  // namespace kernelpro
