// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace kernelpro {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(ErrorKind::kBadInput, "an odd number", "give an even one");
  return n / 2;
}

Result<void> even(int n) {
  KP_TRY(half(n));
  return {};
}

Result<int> quarter(int n) {
  KP_ASSIGN(const int once, half(n));
  KP_ASSIGN(const int twice, half(once));
  return twice;
}

TEST(Try, ReturnsTheErrorAndIgnoresTheValue) {
  EXPECT_TRUE(even(4));
  const Result<void> odd = even(3);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().kind, ErrorKind::kBadInput);
}

TEST(Assign, DeclaresTheValue) { EXPECT_EQ(quarter(12), 3); }

TEST(Assign, ReturnsTheErrorUnchanged) {
  const Result<int> odd = quarter(6);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(odd.error().text(), "an odd number\n  next: give an even one");
}

TEST(Assign, EvaluatesOnce) {
  int calls = 0;
  const auto count = [&]() -> Result<int> { return ++calls; };
  const auto use = [&]() -> Result<void> {
    KP_ASSIGN(const int value, count());
    EXPECT_EQ(value, 1);
    return {};
  };
  EXPECT_TRUE(use());
  EXPECT_EQ(calls, 1);
}

TEST(Assign, LeavesWhatIsThereOnFailure) {
  int kept = 7;
  const auto assign = [&](int n) -> Result<void> {
    KP_ASSIGN(kept, half(n));
    return {};
  };
  EXPECT_FALSE(assign(3));
  EXPECT_EQ(kept, 7);
  EXPECT_TRUE(assign(4));
  EXPECT_EQ(kept, 2);
}

TEST(Assign, MovesTheValue) {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto pass_on = [&]() -> Result<std::unique_ptr<int>> {
    KP_ASSIGN(std::unique_ptr<int> made, make());
    return made;
  };
  EXPECT_EQ(**pass_on(), 5);
}

TEST(Assign, CopiesFromAResultThatIsKept) {
  const Result<std::string> kept = std::string("text");
  const auto read = [&]() -> Result<std::string> {
    KP_ASSIGN(std::string text, kept);
    return text;
  };
  EXPECT_EQ(read(), "text");
  EXPECT_EQ(kept, "text");
}

TEST(Assign, AReferenceLivesAsLongAsTheBlock) {
  const auto make = []() -> Result<std::string> { return std::string(100, 'x'); };
  const auto size = [&]() -> Result<std::size_t> {
    KP_ASSIGN(const std::string& text, make());
    return text.size();
  };
  EXPECT_EQ(size(), 100u);
}

TEST(Assign, TakesCommas) {
  using Pair = std::pair<int, std::string>;
  const auto make = [](std::map<int, std::string> all) -> Result<Pair> { return *all.begin(); };
  const auto use = [&]() -> Result<std::string> {
    KP_ASSIGN((const auto [number, name]), make({{1, "one"}, {2, "two"}}));
    KP_ASSIGN((const std::pair<int, std::string> other),
              Result<std::pair<int, std::string>>(Pair(2, "two")));
    return std::to_string(number) + name + other.second;
  };
  EXPECT_EQ(use(), "1onetwo");
}

TEST(Assign, WorksInLambdasAndInnerBlocks) {
  const auto sum = [](int a, int b) -> Result<int> {
    KP_ASSIGN(int total, half(a));
    if (b != 0) {
      KP_ASSIGN(const int more, half(b));
      total += more;
    }
    return total;
  };
  EXPECT_EQ(sum(4, 6), 5);
  EXPECT_EQ(sum(4, 0), 2);
  EXPECT_FALSE(sum(4, 5));
}

}  // namespace
}  // namespace kernelpro
