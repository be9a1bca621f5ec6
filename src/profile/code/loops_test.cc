// SPDX-License-Identifier: Apache-2.0
#include "profile/code/loops.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace kernelpro {
namespace {

constexpr Flow kNext{};
Flow maybe(int target) { return {target, true}; }
Flow go(int target) { return {target, false}; }
constexpr Flow kEnd{-1, false};

TEST(Loops, StraightCodeHasNone) {
  EXPECT_TRUE(find_loops({}).empty());
  EXPECT_TRUE(find_loops({kNext, kNext, kEnd}).empty());
}

TEST(Loops, NestsAndMergesLoopsWithOneHeader) {
  // 1 { 2 { 3 -> 2 } 4 -> 1 } and a second way back to 1 ("continue").
  const std::vector<Flow> code = {kNext, maybe(5), kNext, maybe(2), maybe(1), maybe(1), kEnd};
  const std::vector<Loop> loops = find_loops(code);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].header, 1);
  EXPECT_EQ(loops[0].body, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(loops[0].depth, 1);
  EXPECT_FALSE(loops[0].innermost);
  EXPECT_EQ(loops[1].body, (std::vector<int>{2, 3}));
  EXPECT_EQ(loops[1].depth, 2);
  EXPECT_EQ(loops[1].parent, 0);
  EXPECT_TRUE(loops[1].innermost);
}

TEST(Loops, ARotatedLoopIsEnteredInItsMiddle) {
  // jump to the test at 3; body 1-2; test jumps back to 1.
  const std::vector<Loop> loops = find_loops({go(3), kNext, kNext, maybe(1), kEnd});
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].header, 3);
  EXPECT_EQ(loops[0].body, (std::vector<int>{1, 2, 3}));
}

TEST(Loops, AnOutOfLineBlockIsNoLoopOfItsOwn) {
  // Loop 1-3; a cold block at 5 jumps back into its middle.
  const std::vector<Loop> loops = find_loops({kNext, maybe(5), kNext, maybe(1), kEnd, go(2)});
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_EQ(loops[0].body, (std::vector<int>{1, 2, 3, 5}));
}

// 0 jumps to 3 or falls through to 1: the loop 1-4 has both entries and contains the loop at 2.
TEST(Loops, ALoopWithTwoEntriesIsOneLoop) {
  const std::vector<Flow> code = {maybe(3), kNext, maybe(2), kNext, maybe(1), kEnd};
  const std::vector<Loop> loops = find_loops(code);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_EQ(loops[0].body, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(loops[0].entries.size(), 2u);
  EXPECT_EQ(loops[1].body, (std::vector<int>{2}));
  EXPECT_EQ(loops[1].parent, 0);
  EXPECT_EQ(loops[1].depth, 2);
}

TEST(Loops, UnreachableCodeIsLeftOut) {
  const std::vector<Flow> code = {kNext, kEnd, kNext, maybe(2), kEnd};
  EXPECT_TRUE(find_loops(code).empty());
  EXPECT_EQ(reachable(code), (std::vector<int>{0, 1}));
}

TEST(Loops, TangledCodeEndsInBoundedTime) {
  std::vector<Flow> code;
  unsigned state = 7;
  for (int i = 0; i < 60'000; ++i) {
    state = state * 1664525u + 1013904223u;
    code.push_back(maybe(static_cast<int>(state % 60'000)));
  }
  const double begin = thread_cpu_s();
  find_loops(code);
  EXPECT_LT(thread_cpu_s() - begin, 20);
  // Many nested loops.
  code.assign(60'000, kNext);
  for (int i = 30'000; i < 60'000; ++i) code[static_cast<std::size_t>(i)] = maybe(59'999 - i);
  find_loops(code);
  EXPECT_LT(thread_cpu_s() - begin, 20);
}

}  // namespace
}  // namespace kernelpro
