// SPDX-License-Identifier: Apache-2.0
#include "base/statistics/sequential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace kernelpro {
namespace {

using State = SequentialRatio::State;

struct Counts {
  int faster = 0, slower = 0, ties = 0, undecided = 0;
  double pairs = 0;  // mean
};

// `make` begins a trial and returns a generator of its ratios.
Counts simulate(const SequentialSettings& settings, int trials,
                const std::function<std::function<double()>(std::mt19937_64&)>& make) {
  Counts counts;
  std::mt19937_64 random(20240511);
  for (int t = 0; t < trials; ++t) {
    const std::function<double()> next = make(random);
    SequentialRatio test(settings);
    while (!test.done()) test.add(next());
    counts.faster += test.state() == State::kFaster ? 1 : 0;
    counts.slower += test.state() == State::kSlower ? 1 : 0;
    counts.ties += test.state() == State::kTie ? 1 : 0;
    counts.undecided += test.state() == State::kUndecided ? 1 : 0;
    counts.pairs += test.pairs() / static_cast<double>(trials);
  }
  return counts;
}

std::function<std::function<double()>(std::mt19937_64&)> normal_ratios(double mean, double sigma) {
  return [=](std::mt19937_64& random) {
    return [&random, d = std::normal_distribution<double>(0, sigma), mean]() mutable {
      return mean * std::exp(d(random));
    };
  };
}

// Without a zone of ties, the looks alone must keep the error rate.
SequentialSettings bare() {
  SequentialSettings settings;
  settings.min_effect = 0;
  settings.max_pairs = 140;
  return settings;
}

TEST(Sequential, EqualsAreDeclaredDifferentAsSeldomAsPromised) {
  constexpr int kTrials = 20000;
  const Counts c = simulate(bare(), kTrials, normal_ratios(1, 0.004));
  EXPECT_LE(c.faster + c.slower, 0.02 * kTrials);
  EXPECT_GT(c.faster + c.slower, 0.001 * kTrials);  // a test that never rejects is useless
}

TEST(Sequential, HeavyTailsChangeNothing) {
  constexpr int kTrials = 20000;
  const Counts c = simulate(bare(), kTrials, [](std::mt19937_64& random) {
    return [&random, d = std::cauchy_distribution<double>(0, 0.003)]() mutable {
      return std::exp(std::clamp(d(random), -5.0, 5.0));
    };
  });
  EXPECT_LE(c.faster + c.slower, 0.02 * kTrials);
}

TEST(Sequential, DriftOfTheMachineIsNoDifference) {
  constexpr int kTrials = 4000;
  const Counts c = simulate(bare(), kTrials, [](std::mt19937_64& random) {
    // Both slow down by 10 % over 200 turns; the order is tossed.
    return [&random, turn = 0.0, d = std::normal_distribution<double>(0, 0.003)]() mutable {
      const auto time = [&] { return (1 + 0.0005 * (turn += 0.5)) * std::exp(d(random)); };
      const double first = time(), second = time();
      return random() % 2 == 0 ? first / second : second / first;
    };
  });
  EXPECT_LE(c.faster + c.slower, 0.02 * kTrials);
}

Counts autocorrelated(const SequentialSettings& settings, double rho, double sigma) {
  return simulate(settings, 2000, [=](std::mt19937_64& random) {
    std::normal_distribution<double> d(0, 1);
    return [&random, d, rho, sigma, state = d(random)]() mutable {
      state = rho * state + std::sqrt(1 - rho * rho) * d(random);
      return std::exp(sigma * state);
    };
  });
}

TEST(Sequential, NeighboursThatResembleEachOther) {
  // Real timings: 0.4 % in a ratio, correlated; the nominal 2 % stays within 5 %.
  SequentialSettings settings;
  const Counts real = autocorrelated(settings, 0.5, 0.004);
  EXPECT_LE(real.faster + real.slower, 0.02 * 2000);
  // Without the zone of ties, and with noise wider than the zone.
  const Counts wild = autocorrelated(bare(), 0.4, 0.02);
  EXPECT_LE(wild.faster + wild.slower, 0.05 * 2000);
}

TEST(Sequential, TwoPercentIsFoundWithinTwentyPairs) {
  const Counts c = simulate({}, 2000, normal_ratios(1.02, 0.003 * std::sqrt(2.0)));
  EXPECT_GT(c.faster, 0.995 * 2000);
  EXPECT_LT(c.pairs, 20);
  const Counts slower = simulate({}, 2000, normal_ratios(1 / 1.02, 0.003 * std::sqrt(2.0)));
  EXPECT_GT(slower.slower, 0.995 * 2000);
}

TEST(Sequential, OnePercentIsFoundToo) {
  const Counts c = simulate({}, 500, normal_ratios(1.01, 0.003 * std::sqrt(2.0)));
  EXPECT_GT(c.faster, 0.98 * 500);
  EXPECT_LT(c.pairs, 40);
}

TEST(Sequential, TiesEndEarlyAsTies) {
  const Counts c = simulate({}, 2000, normal_ratios(1, 0.003 * std::sqrt(2.0)));
  EXPECT_GT(c.ties, 0.99 * 2000);
  EXPECT_LT(c.pairs, 40);
  EXPECT_EQ(c.faster + c.slower, 0);
}

TEST(Sequential, ChangesOnlyAtLooks) {
  SequentialRatio test({});
  EXPECT_EQ(test.until_look(), 12);
  EXPECT_EQ(test.interval().mid, 1);
  for (int i = 0; i < 11; ++i) test.add(2 + 0.1 * (i * 3 % 4));
  EXPECT_EQ(test.state(), State::kUndecided);
  EXPECT_EQ(test.until_look(), 1);
  EXPECT_EQ(test.interval().low, 2);
  test.add(2.5);
  EXPECT_EQ(test.state(), State::kFaster);
  EXPECT_EQ(test.until_look(), 0);
  EXPECT_TRUE(test.done());
  test.add(0.1);  // too late
  EXPECT_EQ(test.pairs(), 12);
  EXPECT_EQ(test.interval().high, 2.5);
}

TEST(Sequential, TooFewPairsDecideNothing) {
  SequentialSettings settings;
  settings.max_pairs = 6;
  SequentialRatio test(settings);
  for (int i = 0; i < 6; ++i) test.add(3);
  EXPECT_TRUE(test.done());
  EXPECT_EQ(test.state(), State::kUndecided);
  EXPECT_EQ(test.interval().low, 3);
}

}  // namespace
}  // namespace kernelpro
