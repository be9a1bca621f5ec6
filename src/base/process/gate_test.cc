// SPDX-License-Identifier: Apache-2.0
#include "base/process/gate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace kernelpro {
namespace {

TEST(Gate, CarriesSignsBetweenTwoMappings) {
  auto mine = Gate::make();
  ASSERT_TRUE(mine) << mine.error().text();
  std::thread worker([fd = mine->fd()] {
    auto theirs = Gate::map(fd);
    ASSERT_TRUE(theirs);
    for (std::uint64_t turn = 1; turn <= 100; ++turn) {
      theirs->give(Sign::kReady, turn);
      ASSERT_TRUE(theirs->await(Sign::kOrder, turn, 100));
      theirs->give(Sign::kAnswer, turn);
    }
  });
  for (std::uint64_t turn = 1; turn <= 100; ++turn) {
    EXPECT_TRUE(mine->await(Sign::kReady, turn, 100));
    mine->give(Sign::kOrder, turn);
    EXPECT_TRUE(mine->await(Sign::kAnswer, turn, 100));
  }
  worker.join();
}

TEST(Gate, AWaitEndsWhenTheTurnIsOver) {
  auto gate = Gate::make();
  ASSERT_TRUE(gate);
  EXPECT_FALSE(gate->await(Sign::kAnswer, 3, 0.03)) << "nobody answers";
  gate->give(Sign::kAnswer, 2);
  gate->give(Sign::kOver, 3);
  EXPECT_FALSE(gate->await(Sign::kAnswer, 3, 1000)) << "an answer of another turn";
  gate->give(Sign::kAnswer, 3);
  EXPECT_TRUE(gate->await(Sign::kAnswer, 3, 1000)) << "it came before the end";
}

TEST(Gate, CannotBeCutOff) {
  auto gate = Gate::make();
  ASSERT_TRUE(gate);
  EXPECT_NE(::ftruncate(gate->fd(), 0), 0);
}

}  // namespace
}  // namespace kernelpro
