// SPDX-License-Identifier: Apache-2.0
// The decisions of a contest over simulated clocks: how often equals are declared different, how
// often a difference is found, and how long that takes.
#include "base/statistics/contest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace kernelpro {
namespace {

using Random = std::mt19937_64;
// A machine: how many seconds `work` seconds of computing take when they start at `now`.
using Machine = std::function<double(double now, double work, Random&)>;

Machine quiet(double sigma) {
  return [=](double, double work, Random& random) {
    return work * std::exp(std::normal_distribution<double>(0, sigma)(random));
  };
}

// Others take up to four fifths of the machine for about a tenth of a second at a time, half of the
// time; a turn that overlaps is late by what they take.
Machine bursty() {
  return [end = 0.0, busy = false](double now, double work, Random& random) mutable {
    double time = 0;
    while (work > 0) {
      if (now + time >= end) {
        busy = random() % 2 == 0;
        end = now + time + std::exponential_distribution<double>(10)(random);
      }
      const double rate =
          busy ? 0.2 + 0.4 * std::uniform_real_distribution<double>(0, 1)(random) : 1;
      const double step = std::min(work / rate, std::max(end - now - time, 1e-4));
      work -= step * rate;
      time += step;
    }
    return time * std::exp(std::normal_distribution<double>(0, 0.004)(random));
  };
}

// Other work that never ends: a turn has a processor for its first slice, then shares it. What it
// waits is known.
TurnTime shared(double work, Random& random) {
  constexpr double kSlice = 0.006;
  work *= std::exp(std::normal_distribution<double>(0, 0.02)(random));
  const double late =
      std::max(0.0, work - kSlice) * (0.8 + 0.4 * std::uniform_real_distribution<double>()(random));
  return {work + late, work};
}

struct Trial {
  Interval ratio;
  double spent_s = 0;
  int incumbent_turns = 0, pairs = 0;
  bool faster() const { return ratio.low > 1.005; }
  bool slower() const { return ratio.high < 0.995; }
};

// `seen`: other work was observed during every pair.
Trial play(ContestSettings settings, double incumbent_s, double candidate_s, const Machine& machine,
           bool seen, Random& random) {
  settings.incumbent_s = incumbent_s;
  settings.candidate_s = candidate_s;
  settings.seed = random();
  Contest contest(settings);
  Trial trial;
  Machine clock = machine;
  double now = 0;
  const auto turn = [&](bool incumbent) {
    trial.incumbent_turns += incumbent;
    const double time = clock(now, incumbent ? incumbent_s : candidate_s, random);
    now += time;
    return time;
  };
  for (;;) {
    const Contest::Next next = contest.next(now);
    if (next == Contest::Next::kDone) break;
    if (next != Contest::Next::kPair) {
      const bool incumbent = next == Contest::Next::kIncumbent;
      contest.add_turn(incumbent, turn(incumbent));
    } else if (random() % 2 == 0) {
      const double first = turn(true), second = turn(false);
      contest.add_pair(first, second, seen);
    } else {
      const double first = turn(false), second = turn(true);
      contest.add_pair(second, first, seen);
    }
  }
  trial.ratio = contest.ratio();
  trial.pairs = contest.pairs();
  trial.spent_s = now;
  return trial;
}

struct Shares {
  double faster = 0, slower = 0, covered = 0, seconds = 0, incumbent_turns = 0;
};

Shares simulate(const ContestSettings& settings, double ratio, double candidate_s,
                const Machine& machine, int trials = 2000, bool seen = false) {
  Random random(20261122);
  Shares shares;
  for (int t = 0; t < trials; ++t) {
    const Trial trial = play(settings, ratio * candidate_s, candidate_s, machine, seen, random);
    const double one = 1.0 / trials;
    shares.faster += trial.faster() ? one : 0;
    shares.slower += trial.slower() ? one : 0;
    shares.covered += trial.ratio.low <= ratio && ratio <= trial.ratio.high ? one : 0;
    shares.seconds += trial.spent_s * one;
    shares.incumbent_turns += trial.incumbent_turns * one;
  }
  return shares;
}

ContestSettings confirming() {
  ContestSettings settings;
  settings.max_pairs = 80;
  settings.enough_pairs = 15;
  settings.budget_s = 2.5;
  settings.hard_budget_s = 25;
  settings.stop_early = false;
  return settings;
}

TEST(Contest, EqualsAreDeclaredDifferentAsSeldomAsPromised) {
  for (const double candidate_s : {0.003, 0.1, 5.0}) {
    for (const Machine& machine : {quiet(0.004), quiet(0.05), bursty()}) {
      const Shares shares = simulate({}, 1, candidate_s, machine);
      EXPECT_LE(shares.faster, 0.02) << candidate_s;
      EXPECT_LE(shares.slower, 0.02) << candidate_s;
    }
  }
}

TEST(Contest, ConfirmationsOfEqualsHoldOne) {
  for (const double candidate_s : {0.003, 2.0}) {
    for (const Machine& machine : {quiet(0.01), bursty()}) {
      const Shares shares = simulate(confirming(), 1, candidate_s, machine, 1000);
      EXPECT_LE(shares.faster, 0.05) << candidate_s;
      EXPECT_GE(shares.covered, 0.93) << candidate_s;
    }
  }
}

TEST(Contest, TwoPercentIsFoundWhereTheMachineIsQuiet) {
  EXPECT_GT(simulate({}, 1.02, 0.003, quiet(0.004)).faster, 0.99);
  EXPECT_GT(simulate({}, 1 / 1.02, 0.003, quiet(0.004)).slower, 0.95);
}

TEST(Contest, TenPercentIsFound) {
  for (const double candidate_s : {0.003, 0.1, 1.0}) {
    EXPECT_GT(simulate({}, 1.1, candidate_s, quiet(0.01), 500).faster, 0.99) << candidate_s;
  }
}

TEST(Contest, TwiceAsFastIsFoundUnderBurstsToo) {
  EXPECT_GT(simulate({}, 2, 0.003, quiet(0.02)).faster, 0.999);
  EXPECT_GT(simulate({}, 2, 0.003, bursty(), 1000).faster, 0.9);
}

TEST(Contest, LoadThatIsSeenMakesNobodyFaster) {
  const Shares equal = simulate({}, 1, 0.003, bursty(), 25, true);
  EXPECT_LE(equal.faster, 0.04);
  EXPECT_LE(equal.slower, 0.04);
  EXPECT_GT(simulate({}, 1.5, 0.003, bursty(), 10, true).faster, 0.7);
  const Shares confirmed = simulate(confirming(), 1.3, 0.003, bursty(), 5, true);
  EXPECT_GE(confirmed.covered, 0.6);
  EXPECT_GE(confirmed.faster, 0.6);
}

TEST(Contest, LoadThatNeverEndsWidensTheInterval) {
  Random random(20261123);
  for (ContestSettings settings : {ContestSettings(), confirming()}) {
    for (const double ratio : {1.0, 10.8}) {
      constexpr double kCandidate = 0.005, kTrials = 6;
      int covered = 0, above = 0;
      for (int t = 0; t < kTrials; ++t) {
        settings.incumbent_s = ratio * kCandidate;
        settings.candidate_s = kCandidate;
        settings.seed = random();
        Contest contest(settings);
        for (double now = 0;;) {
          const Contest::Next next = contest.next(now);
          if (next == Contest::Next::kDone) break;
          const TurnTime theirs = shared(ratio * kCandidate, random);
          const TurnTime mine = shared(kCandidate, random);
          if (next == Contest::Next::kPair) {
            contest.add_pair(theirs, mine, true);
            now += theirs.time + mine.time;
          } else {
            const bool incumbent = next == Contest::Next::kIncumbent;
            contest.add_turn(incumbent, incumbent ? theirs : mine);
            now += incumbent ? theirs.time : mine.time;
          }
        }
        covered += contest.ratio().low <= ratio && ratio <= contest.ratio().high ? 1 : 0;
        above += contest.ratio().mid > 1.05 * ratio ? 1 : 0;
      }
      EXPECT_GE(covered, kTrials - 1) << ratio;
      EXPECT_EQ(above, 0) << ratio;
    }
  }
}

TEST(Contest, WaitingGainsNothing) {
  const auto play_with = [](double least) {
    ContestSettings settings = confirming();
    settings.incumbent_s = settings.candidate_s = 0.01;
    Contest contest(settings);
    for (int i = 0; i < 20; ++i) contest.add_pair(1, {2, least}, true);
    return contest.ratio();
  };
  EXPECT_DOUBLE_EQ(play_with(0.1).low, play_with(2).low);
  EXPECT_DOUBLE_EQ(play_with(0.1).mid, play_with(2).mid);
  EXPECT_GT(play_with(0.1).high, play_with(2).high);
}

TEST(Contest, ThreeHundredTimesAsFastIsSeenAtOnce) {
  const Shares calm = simulate({}, 300, 0.015, quiet(0.02), 300);
  EXPECT_GT(calm.faster, 0.999);
  EXPECT_LE(calm.incumbent_turns, 2);
  EXPECT_LT(calm.seconds, 10);
  const Shares loaded = simulate({}, 300, 0.015, bursty(), 300);
  EXPECT_GT(loaded.faster, 0.99);
}

TEST(Contest, ASlowStartIsConfirmedToo) {
  const Shares shares = simulate(confirming(), 300, 0.015, quiet(0.02), 200);
  EXPECT_GT(shares.faster, 0.999);
  EXPECT_GE(shares.covered, 0.93);
  EXPECT_LT(shares.incumbent_turns, 4);
}

TEST(Contest, ASlowCandidateIsGivenUpSoon) {
  const Shares shares = simulate({}, 0.01, 5, quiet(0.02), 200);
  EXPECT_EQ(shares.faster, 0);
  EXPECT_LT(shares.seconds, 20);
}

TEST(Contest, AloneItIsTimedAsTheBudgetAllows) {
  ContestSettings settings;
  settings.candidate_s = 0.1;
  Contest contest(settings);
  double now = 0;
  while (contest.next(now) != Contest::Next::kDone) {
    ASSERT_EQ(contest.next(now), Contest::Next::kPair);
    contest.add_pair(0, 0.1);
    now += 0.1;
  }
  EXPECT_GE(contest.pairs(), 9);
  EXPECT_LE(contest.pairs(), 12);
}

TEST(Contest, AnIncumbentThatGoesLeavesTheCandidateAlone) {
  ContestSettings settings;
  settings.incumbent_s = settings.candidate_s = 0.1;
  Contest contest(settings);
  EXPECT_NE(contest.next(0), Contest::Next::kPair);  // a block first
  contest.drop_incumbent();
  EXPECT_EQ(contest.next(0), Contest::Next::kPair);
  for (int i = 0; i < 40; ++i) contest.add_pair(0, 0.1);
  EXPECT_EQ(contest.next(0), Contest::Next::kDone);
  EXPECT_EQ(contest.candidate_times().size(), 40u);
}

}  // namespace
}  // namespace kernelpro
