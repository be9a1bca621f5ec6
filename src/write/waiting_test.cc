// SPDX-License-Identifier: Apache-2.0
#include "write/waiting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace kernelpro {
namespace {

TEST(Waiting, TellsUntilTheAnswerIsThere) {
  std::atomic<int> told{0};
  std::promise<double> second;
  {
    const Waiting waiting(
        [&](double waited_s) {
          if (++told == 2) second.set_value(waited_s);
        },
        0.001, 0.002);
    EXPECT_DOUBLE_EQ(second.get_future().get(), 0.003);
  }
  const int then = told;
  EXPECT_EQ(told, then) << "nothing comes after its end";
}

TEST(Waiting, AnAnswerInTimeIsNoWait) {
  std::atomic<int> told{0};
  {
    const Waiting waiting([&](double) { ++told; }, 3600, 3600);
  }
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace kernelpro
