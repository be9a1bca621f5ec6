// SPDX-License-Identifier: Apache-2.0
#include "core/candidate/requirements.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "core/candidate/knobs.h"

namespace kernelpro {
namespace {

const std::string kKnobs =
    "// @knob A 1 2 3 4\n"
    "// @knob B 0 1 8 -5\n"
    "// @knob T float half\n"
    "// @knob U 4u 16UL\n";

std::string with(const std::string& condition) {
  return kKnobs + "// @require " + condition + "\n";
}

std::vector<Knob> knobs() {
  std::vector<Knob> all;
  all.push_back({"A", {"1", "2", "3", "4"}, {}, 1});
  all.push_back({"B", {"0", "1", "8", "-5"}, {}, 2});
  all.push_back({"T", {"float", "half"}, {}, 3});
  all.push_back({"U", {"4u", "16UL"}, {}, 4});
  return all;
}

bool holds(const std::string& condition, const KnobValues& values) {
  const auto parsed = Requirements::parse(with(condition), knobs());
  EXPECT_TRUE(parsed) << condition << ": " << parsed.error().text();
  return parsed && parsed->broken(values).empty();
}

// C++'s value of the same expression, without the parentheses that compilers want.
#pragma GCC diagnostic ignored "-Wparentheses"
#define SAME_AS_CPP(expression)                                                                   \
  for (const int A : {1, 2, 3, 4}) {                                                              \
    for (const int B : {0, 1, 8, -5}) {                                                           \
      const bool wanted = (expression) != 0;                                                      \
      EXPECT_EQ(holds(#expression, {{"A", std::to_string(A)}, {"B", std::to_string(B)}}), wanted) \
          << #expression << " with A=" << A << " B=" << B;                                        \
    }                                                                                             \
  }

TEST(Requirements, MeanWhatTheyMeanInCpp) {
  SAME_AS_CPP(A);
  SAME_AS_CPP(A == 2);
  SAME_AS_CPP(A != 2);
  SAME_AS_CPP((A < 3) == (B > 0));
  SAME_AS_CPP(A == B > 0);
  SAME_AS_CPP(A + B * 2 - 1 <= 3);
  SAME_AS_CPP(A - B - 1 >= 1);
  SAME_AS_CPP((A - (B - 1)) * -1 > -3);
  SAME_AS_CPP(8 / A / 2 == 1);
  SAME_AS_CPP(B % A == 0);
  SAME_AS_CPP(!B || A > 2 && B < 5);
  SAME_AS_CPP(!(A == 1) && !!B);
  SAME_AS_CPP(not B or A > 2 and B < 5);
  SAME_AS_CPP(-B % 3 + A);
  SAME_AS_CPP(- -A == A);
}

TEST(Requirements, WhatDividesByZeroDoesNotHold) {
  EXPECT_FALSE(holds("A / B >= 0", {{"A", "4"}, {"B", "0"}}));
  EXPECT_FALSE(holds("A % B == 0 || 1", {{"A", "4"}, {"B", "0"}}));
  EXPECT_TRUE(holds("A / B >= 0", {{"A", "4"}, {"B", "1"}}));
  EXPECT_FALSE(holds("(0 - 9223372036854775807 - 1) / (0 - A) == 0 || 1", {{"A", "1"}}));
}

TEST(Requirements, SuffixesCountAndOtherValuesDoNotMatter) {
  EXPECT_TRUE(holds("U * A == 16", {{"U", "4u"}, {"A", "4"}, {"T", "half"}}));
  EXPECT_FALSE(holds("U * A == 16", {{"U", "16UL"}, {"A", "4"}, {"T", "half"}}));
  EXPECT_FALSE(holds("A > 0", {}));  // unknown
}

TEST(Requirements, AllHoldByIndexAsByValue) {
  const auto parsed = Requirements::parse(with("A > 1") + "// @require A * B <= 8\n", knobs());
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->hold({0, 1, 0, 0}));
  EXPECT_TRUE(parsed->hold({1, 1, 1, 0}));
  EXPECT_TRUE(parsed->hold({3, 0, 0, 1}));
  EXPECT_FALSE(parsed->hold({1, 2, 0, 0}));
  EXPECT_EQ(parsed->broken({{"A", "2"}, {"B", "8"}}), "A * B <= 8");
  EXPECT_TRUE(Requirements().hold({5, 5}));
  EXPECT_TRUE(Requirements::parse(kKnobs, knobs())->empty());
}

TEST(Requirements, MistakesAreNamedWithTheirLine) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "it ends where"},
      {"A %", "it ends where"},
      {"A == C", "\"C\" is neither a knob nor an integer"},
      {"A == 1.5", "is too much"},
      {"T == 1", "the knob T has the value float, which is not an integer"},
      {"(A == 1", "a ) is missing"},
      {"A == 1)", "\")\" is too much"},
      {"A = 1", "\"=\" is too much"},
      {"A & 1", "\"&\" is too much"},
      {"A == 99999999999999999999", "neither a knob nor an integer"},
      {std::string(5000, '('), "nested too deeply"},
      {std::string(5000, '!') + "A", "nested too deeply"},
  };
  for (const auto& [condition, said] : wrong) {
    const auto parsed = Requirements::parse(with(condition), knobs());
    ASSERT_FALSE(parsed) << condition;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(contains(parsed.error().message, said)) << parsed.error().message;
    EXPECT_TRUE(contains(parsed.error().message, "line 5")) << parsed.error().message;
  }
  std::string sum = "A";
  for (int i = 0; i < 5000; ++i) sum += " + A";
  EXPECT_FALSE(Requirements::parse(with(sum), knobs()));
}

TEST(Requirements, AnyTextIsReadOrRefused) {
  const std::vector<std::string> pieces = {
      "A", "B",  "U",  "T",  "x",  "7",  "0", "(", ")", "!", "-", "*",   "/",   "%",    "+",
      "<", "<=", "==", "!=", "&&", "||", "=", "&", "|", ".", ",", "and", "not", "\x80", "\""};
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string condition;
    for (auto n = random() % 9; n > 0; --n) {
      condition += pieces[random() % pieces.size()] + (random() % 2 == 0 ? " " : "");
    }
    const auto parsed = Requirements::parse(with(condition), knobs());
    if (!parsed) continue;
    ++read;
    const std::vector<std::uint16_t> at = {3, 3, 1, 1};
    const KnobValues values = {{"A", "4"}, {"B", "-5"}, {"T", "half"}, {"U", "16UL"}};
    EXPECT_EQ(parsed->hold(at), parsed->broken(values).empty()) << condition;
  }
  EXPECT_GT(read, 100);
}

TEST(Requirements, AreCheckedWithTheKnobs) {
  const auto broken = parse_knobs("// @knob A 1 2\n// @require A > 1\n");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(contains(broken.error().message, "A > 1")) << broken.error().message;
  EXPECT_TRUE(contains(broken.error().next, "first")) << broken.error().next;
  EXPECT_FALSE(parse_knobs("// @knob A 1 2\n// @require B > 1\n"));
  EXPECT_TRUE(parse_knobs("// @knob A 2 1\n// @require A > 1\n"));
  // Not a declaration: other words, other places.
  EXPECT_TRUE(parse_knobs("// @knob A 1 2\n// @requires A > 1\nint x; // @require A > 1\n"));
}

}  // namespace
}  // namespace kernelpro
