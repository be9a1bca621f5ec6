// SPDX-License-Identifier: Apache-2.0
#include "core/task/expression.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

const std::map<std::string, std::int64_t> kDims = {{"M", 7}, {"COLS", 33}, {"_n", 2}};

std::int64_t value(std::string_view text) {
  const auto result = evaluate_expression(text, kDims);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result.value_or(INT64_MIN);
}

std::string failure(std::string_view text) {
  const auto result = evaluate_expression(text, kDims);
  return result ? "" : result.error().message;
}

TEST(Expression, FollowsTheUsualPrecedence) {
  EXPECT_EQ(value("42"), 42);
  EXPECT_EQ(value(" M "), 7);
  EXPECT_EQ(value("2*M+COLS"), 47);
  EXPECT_EQ(value("2*(M+COLS)"), 80);
  EXPECT_EQ(value("(COLS+31)/32"), 2);
  EXPECT_EQ(value("COLS%M*_n"), 10);
  EXPECT_EQ(value("100-10-1"), 89);
  EXPECT_EQ(value("64/4/2"), 8);
  EXPECT_EQ(value("-M + --3"), -4);
  EXPECT_EQ(value("9223372036854775807"), INT64_MAX);
}

TEST(Expression, FaultsNameTheirCause) {
  EXPECT_TRUE(contains(failure(""), "ends too early"));
  EXPECT_TRUE(contains(failure("M*"), "ends too early"));
  EXPECT_TRUE(contains(failure("ROWS"), "the dimension ROWS is not given"));
  EXPECT_TRUE(contains(failure("M/(M-7)"), "division by zero"));
  EXPECT_TRUE(contains(failure("M%0"), "division by zero"));
  EXPECT_TRUE(contains(failure("(M"), "a ')' is missing"));
  EXPECT_TRUE(contains(failure("M)"), "unexpected ')'"));
  EXPECT_TRUE(contains(failure("M M"), "unexpected 'M'"));
  EXPECT_TRUE(contains(failure("1.5"), "unexpected '.'"));
  EXPECT_TRUE(contains(failure("0x10"), "not an integer"));
  EXPECT_TRUE(contains(failure("2**3"), "unexpected '*'"));
}

TEST(Expression, OverflowIsAnErrorNotAnotherNumber) {
  EXPECT_TRUE(contains(failure("9223372036854775808"), "does not fit 64 bits"));
  EXPECT_TRUE(contains(failure("9223372036854775807+1"), "does not fit 64 bits"));
  EXPECT_TRUE(contains(failure("-9223372036854775807-2"), "does not fit 64 bits"));
  EXPECT_TRUE(contains(failure("4611686018427387904*2"), "does not fit 64 bits"));
  EXPECT_TRUE(contains(failure("(-9223372036854775807-1)/-1"), "does not fit 64 bits"));
}

TEST(Expression, DeepNestingEndsWithAMessage) {
  EXPECT_TRUE(contains(failure(std::string(100000, '(')), "too deeply nested"));
  EXPECT_TRUE(contains(failure(std::string(100000, '-')), "too deeply nested"));
}

}  // namespace
}  // namespace kernelpro
