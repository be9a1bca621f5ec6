// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/turns.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpro {
namespace {

TEST(Turns, ShortCallsHaveSeveralToATurn) {
  EXPECT_EQ(calls_per_turn(1e5, 0, kAroundCallNs, 128), 27);
  EXPECT_EQ(calls_per_turn(1e3, 0, kAroundCallNs, 128), 79);
  EXPECT_EQ(calls_per_turn(1e3, 0, kAroundCallNs, 5), 5);
  EXPECT_EQ(calls_per_turn(5e6, 0, kAroundCallNs, 128), 1);
  EXPECT_EQ(calls_per_turn(1e12, 0, kAroundCallNs, 128), 1);
  EXPECT_EQ(calls_per_turn(1, 0, kAroundCallNs, 1), 1);
}

// Where the inputs are large, a few calls must do.
TEST(Turns, WhatComesAroundCallsIsPaidFor) {
  EXPECT_EQ(calls_per_turn(1e5, 0, 1e6, 128), 8);
  EXPECT_EQ(calls_per_turn(1e3, 0, 1e5, 128), 40);
  EXPECT_EQ(calls_per_turn(1e6, 0, 1e7, 128), 4);
}

// The faster side decides, as far as the slower one's turn does not become too long.
TEST(Turns, BothSidesCount) {
  EXPECT_EQ(calls_per_turn(1e5, 2e5, kAroundCallNs, 128), 27);
  EXPECT_EQ(calls_per_turn(2e5, 1e5, kAroundCallNs, 128), 27);
  EXPECT_EQ(calls_per_turn(1e5, 1e7, kAroundCallNs, 128), 4);
  EXPECT_EQ(calls_per_turn(1e5, 5e9, kAroundCallNs, 128), 1);
}

TEST(Turns, ASideThatWasAsleepIsTimedAnew) {
  const int asleep = calls_per_turn(6e7, 1e5, kAroundCallNs, 128),
            awake = calls_per_turn(1e5, 1e5, kAroundCallNs, 128);
  EXPECT_EQ(asleep, 1);
  EXPECT_TRUE(much_too_short(asleep, awake));
  // Noise, or a side that cannot have longer turns, is none.
  EXPECT_FALSE(much_too_short(40, calls_per_turn(0.7e5, 1e5, kAroundCallNs, 128)));
  EXPECT_FALSE(much_too_short(1, calls_per_turn(1e3, 5e9, kAroundCallNs, 128)));
}

TEST(Turns, AnOrderCostsWhatMostOrdersCost) {
  EXPECT_EQ(typical_order({7}), 7);
  EXPECT_EQ(typical_order({900, 5, 20, 21, 22, 23, 24, 800}), 21);
}

// What other threads do while an order or an answer is on its way counts.
TEST(Turns, OrdersHideNoWorkOfOtherThreads) {
  MeasuredTurn turn;
  turn.wall_ns = 1e6;
  turn.calls = 10;
  EXPECT_EQ(own_ns(turn, {2e4, 0}), 8e5);
  turn.others_cpu_ns = 5e4;
  EXPECT_EQ(own_ns(turn, {2e4, 0}), 8.5e5);
  turn.others_cpu_ns = 3e6;
  EXPECT_EQ(own_ns(turn, {2e4, 0}), 1e6);
}

// A kernel that does not wait for its orders as the worker does saves waking up.
TEST(Turns, WhatAThreadComputedIsTheLeastThatCounts) {
  const OrderCost order{4e4, 5e3};
  MeasuredTurn waits;
  waits.calls = 10;
  waits.wall_ns = 6.5e5;
  waits.cpu_ns = 3e5;
  EXPECT_EQ(own_ns(waits, order), 2.5e5);
  MeasuredTurn spins = waits;
  spins.wall_ns = 4.5e5;
  spins.cpu_ns = 4.5e5;
  EXPECT_EQ(own_ns(spins, order), 4e5);
  spins.others_cpu_ns = INFINITY;  // unknown: nothing is subtracted
  EXPECT_EQ(own_ns(spins, order), 4.5e5);
}

// Nobody is credited for a wait that others cannot have caused: its own helper's work, for one.
TEST(Turns, AWaitCountsOnlyAsFarAsOthersWorked) {
  EXPECT_EQ(least_ns({1e6, 1e6, 0.01, 9e5}, 2), 1e6);
  EXPECT_DOUBLE_EQ(least_ns({1e6, 1e6, 0.1, 9e5}, 2), 8e5);
  EXPECT_DOUBLE_EQ(least_ns({1e6, 1e6, 0.4, 1e5}, 2), 9e5);
  EXPECT_DOUBLE_EQ(least_ns({1e6, 1.6e6, 0.9, 9e5}, 2), 8e5);
}

TEST(Turns, ShortTurnsDoNotHideTheLoadThatLongOnesSaw) {
  ForeignShare share;
  EXPECT_EQ(share.mean(), 0);
  for (int i = 0; i < 20; ++i) share.add({1e4, 1e4, 0});
  share.add({4e7, 2e7, 0.6});
  EXPECT_NEAR(share.mean(), 0.6, 0.01);
}

}  // namespace
}  // namespace kernelpro
