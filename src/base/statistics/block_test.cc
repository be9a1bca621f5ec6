// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>

namespace kernelpro {
namespace {

TEST(Block, ChanceIsTheBinomial) {
  EXPECT_DOUBLE_EQ(separation_chance({5, 5}), 2.0 / 252);
  EXPECT_DOUBLE_EQ(separation_chance({1, 1}), 1.0);
  EXPECT_DOUBLE_EQ(separation_chance({2, 19}), 2.0 / 210);
  EXPECT_DOUBLE_EQ(separation_chance({19, 2}), 2.0 / 210);
}

TEST(Block, ASlowSideIsMeasuredRarely) {
  const BlockSize equal = cheapest_block(1, 1, 0.01);
  EXPECT_EQ(equal.incumbent + equal.candidate, 10);
  const BlockSize slow = cheapest_block(4.5, 0.02, 0.01);
  EXPECT_EQ(slow.incumbent, 1);
  EXPECT_LE(separation_chance(slow), 0.01);
  const BlockSize slower = cheapest_block(0.5, 5, 0.01);  // the candidate is the slow one
  EXPECT_LE(slower.candidate, 3);
  EXPECT_GE(slower.incumbent, 9);
}

TEST(Block, TheFallbackIsTheEqualBlock) {
  const BlockSize none = cheapest_block(1, 1, 1e-30, 4);
  EXPECT_EQ(none.incumbent, 4);
  EXPECT_EQ(none.candidate, 4);
}

TEST(Block, EveryOrderIsAsLikely) {
  // 6 orders of 2 against 2, each with 1/6.
  std::map<std::vector<bool>, int> seen;
  constexpr int kTrials = 6000;
  for (int t = 0; t < kTrials; ++t) ++seen[block_order({2, 2}, static_cast<std::uint64_t>(t))];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, kTrials / 6, 150);
}

TEST(Block, RatioHoldsTheTruth) {
  const Interval ratio = block_ratio({10, 12, 11}, {1, 2});
  EXPECT_DOUBLE_EQ(ratio.low, 5);
  EXPECT_DOUBLE_EQ(ratio.mid, 11 / 1.5);
  EXPECT_DOUBLE_EQ(ratio.high, 12);
  EXPECT_TRUE(separated({10, 12, 11}, {1, 2}));
  EXPECT_TRUE(separated({1, 2}, {10, 12, 11}));
  EXPECT_FALSE(separated({1, 3}, {2, 4}));
}

// The machine's effect on the k-th turn of a block, as a factor.
using Noise = std::function<std::function<double()>(std::mt19937_64&)>;

// Fractions of blocks in which the candidate was found faster, and slower.
std::pair<double, double> simulate(BlockSize size, double truth, const Noise& noise, int trials) {
  std::mt19937_64 random(7);
  int faster = 0, slower = 0;
  for (int t = 0; t < trials; ++t) {
    const std::function<double()> factor = noise(random);
    std::vector<double> incumbent, candidate;
    for (const bool is_incumbent : block_order(size, random())) {
      (is_incumbent ? incumbent : candidate).push_back(factor() * (is_incumbent ? truth : 1));
    }
    if (!separated(incumbent, candidate)) continue;
    ++(block_ratio(incumbent, candidate).mid > 1 ? faster : slower);
  }
  return {static_cast<double>(faster) / trials, static_cast<double>(slower) / trials};
}

Noise quiet(double sigma) {
  return [=](std::mt19937_64& random) {
    return [&random, d = std::normal_distribution<double>(0, sigma)]() mutable {
      return std::exp(d(random));
    };
  };
}

// Busy for some turns, then not: while busy, a turn takes up to five times as long.
Noise bursts() {
  return [](std::mt19937_64& random) {
    return [&random, left = 0, busy = false]() mutable {
      if (left-- <= 0) {
        busy = random() % 2 == 0;
        left = static_cast<int>(random() % 6);
      }
      return busy ? 1 + 4 * std::uniform_real_distribution<double>(0, 1)(random)
                  : 1 + 0.01 * std::uniform_real_distribution<double>(0, 1)(random);
    };
  };
}

TEST(Block, EqualsSeparateAsSeldomAsPromisedWhateverTheNoise) {
  for (const BlockSize size : {BlockSize{5, 5}, BlockSize{1, 199}, BlockSize{2, 19}}) {
    for (const Noise& noise : {quiet(0.004), bursts()}) {
      const auto [faster, slower] = simulate(size, 1, noise, 20000);
      EXPECT_LE(faster + slower, 0.0125) << size.incumbent << " against " << size.candidate;
    }
  }
}

TEST(Block, PowerByRatio) {
  EXPECT_GT(simulate({5, 5}, 1.1, quiet(0.01), 2000).first, 0.99);
  EXPECT_GT(simulate({5, 5}, 2, quiet(0.05), 2000).first, 0.999);
  EXPECT_GT(simulate({1, 199}, 300, bursts(), 2000).first, 0.999);
  EXPECT_GT(simulate({5, 5}, 300, bursts(), 2000).first, 0.999);
}

}  // namespace
}  // namespace kernelpro
