// SPDX-License-Identifier: Apache-2.0
#include "profile/import/csv.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

std::vector<std::vector<std::string>> records(std::string_view text) {
  std::vector<std::vector<std::string>> all;
  std::vector<std::string> fields;
  while (next_record(&text, &fields)) all.push_back(fields);
  return all;
}

using Fields = std::vector<std::string>;

TEST(Csv, QuotesCommasAndLineEnds) {
  const auto all = records("a,\"b, c\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",,3\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (Fields{"a", "b, c", "say \"hi\""}));
  EXPECT_EQ(all[1], (Fields{"two\nlines", "", "3"}));
}

TEST(Csv, AnOpenQuoteEndsWithItsLine) {
  const auto all = records("\"cut off\nnext,row");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0], (Fields{"cut off"}));
  EXPECT_EQ(all[1], (Fields{"next", "row"}));
}

TEST(Csv, LastFieldMayBeEmpty) {
  EXPECT_EQ(records("a,b,").at(0), (Fields{"a", "b", ""}));
  EXPECT_EQ(records("\n").at(0), (Fields{""}));
  EXPECT_TRUE(records("").empty());
}

// Time is linear in the text, not quadratic, with or without commas.
TEST(Csv, LongTexts) {
  std::string without;
  for (int i = 0; i < 200000; ++i) without += "no comma here\n";
  EXPECT_EQ(records(without).size(), 200000u);
  std::string wide;
  for (int i = 0; i < 200000; ++i) wide += "\"x\",";
  EXPECT_EQ(records(wide).at(0).size(), 200001u);
}

TEST(Numbers, ThousandsInBothWays) {
  EXPECT_EQ(read_number("1,234,567.50", DecimalSign::kPoint), 1234567.5);
  EXPECT_EQ(read_number("1.234.567,50", DecimalSign::kComma), 1234567.5);
  EXPECT_EQ(read_number("12\xe2\x80\xaf"
                        "345,5",
                        DecimalSign::kComma),
            12345.5);
  EXPECT_EQ(read_number("1'234.5", DecimalSign::kPoint), 1234.5);
  EXPECT_EQ(read_number("-0.5", DecimalSign::kPoint), -0.5);
  EXPECT_EQ(read_number("1.5e+09", DecimalSign::kPoint), 1.5e9);
  EXPECT_EQ(read_number("43.1 %", DecimalSign::kPoint), 43.1);
}

TEST(Numbers, WhatIsNone) {
  for (const char* text :
       {"", "n/a", "nan", "NaN", "inf", "-", "(256, 1, 1)", "0x10", "12 apples", "1e999"}) {
    EXPECT_FALSE(read_number(text, DecimalSign::kPoint)) << text;
  }
}

DecimalSign decide(std::initializer_list<const char*> numbers) {
  DecimalVote vote;
  for (const char* number : numbers) vote.look(number);
  return vote.decide();
}

TEST(Numbers, TheLocaleShowsItself) {
  EXPECT_EQ(decide({"1,234", "56"}), DecimalSign::kPoint);
  EXPECT_EQ(decide({"1,234", "12,50"}), DecimalSign::kComma);
  EXPECT_EQ(decide({"1.234,5"}), DecimalSign::kComma);
  EXPECT_EQ(decide({"1,234,567"}), DecimalSign::kPoint);
  EXPECT_EQ(decide({"0.25", "1,234"}), DecimalSign::kPoint);
}

TEST(Units, PrefixesAndFractions) {
  EXPECT_DOUBLE_EQ(*convert_unit("usecond", "ns"), 1000);
  EXPECT_DOUBLE_EQ(*convert_unit("ms", "ns"), 1e6);
  EXPECT_DOUBLE_EQ(*convert_unit("Mbyte", "byte"), 1e6);
  EXPECT_DOUBLE_EQ(*convert_unit("KiB", "byte"), 1024);
  EXPECT_DOUBLE_EQ(*convert_unit("Gbyte/second", "byte/s"), 1e9);
  EXPECT_DOUBLE_EQ(*convert_unit("cycle/nsecond", "1/s"), 1e9);
  EXPECT_DOUBLE_EQ(*convert_unit("Ghz", "1/s"), 1e9);
  EXPECT_DOUBLE_EQ(*convert_unit("inst/cycle", "1/cycle"), 1);
  EXPECT_DOUBLE_EQ(*convert_unit("Kbyte/block", "byte"), 1000);
  EXPECT_DOUBLE_EQ(*convert_unit("", "%"), 1);
  EXPECT_DOUBLE_EQ(*convert_unit("inst", "1"), 1);
}

TEST(Units, WhatDoesNotFit) {
  EXPECT_FALSE(convert_unit("usecond", "byte"));
  EXPECT_FALSE(convert_unit("furlong", "ns"));
  EXPECT_FALSE(convert_unit("byte", "byte/s"));
}

}  // namespace
}  // namespace kernelpro
