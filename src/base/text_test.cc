// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace kernelpro {
namespace {

using Parts = std::vector<std::string>;

TEST(Text, SplitsAndJoins) {
  EXPECT_EQ(trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(split("a,,b,", ','), (Parts{"a", "", "b", ""}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(words("  a\tbc \n d"), (Parts{"a", "bc", "d"}));
  EXPECT_EQ(lines("a\r\n\nb"), (Parts{"a", "", "b"}));
  EXPECT_EQ(lines("a\n"), (Parts{"a"}));
  EXPECT_EQ(join_text({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join_text({}, ", "), "");
  EXPECT_EQ(replace_all("aaa", "a", "aa"), "aaaaaa");
  EXPECT_EQ(replace_all("abc", "", "x"), "abc");
  EXPECT_EQ(replace_all("xaxxax", "ax", ""), "xx");
}

// Editing in place moves the rest of the text each time: minutes instead of milliseconds.
TEST(Text, TheFirstLine) {
  EXPECT_EQ(first_line(""), "");
  EXPECT_EQ(first_line("one"), "one");
  EXPECT_EQ(first_line("one\r\ntwo\n"), "one");
  EXPECT_EQ(first_line("\ntwo"), "");
}

TEST(Text, ReplacesInLinearTime) {
  std::string windows;
  for (int i = 0; i < (1 << 20); ++i) windows += "\r\n";
  const double begin = thread_cpu_s();
  EXPECT_EQ(replace_all(windows, "\r\n", "\n"), std::string(1 << 20, '\n'));
  EXPECT_LT(thread_cpu_s() - begin, 5);
}

TEST(Text, Identifiers) {
  for (const char* good : {"a", "_", "A9_z"}) EXPECT_TRUE(is_identifier(good)) << good;
  for (const char* bad : {"", "9a", "a b", "a-b", "\xc3\xa4", "a\n"}) {
    EXPECT_FALSE(is_identifier(bad)) << bad;
  }
}

TEST(Text, HexadecimalNumbersAreDigitsOnly) {
  unsigned long long value = 7;
  for (const char* bad : {"", "0x1f", "-1", "+1", " 1", "1 ", "1g", "10000000000000000"}) {
    EXPECT_FALSE(parse_hex(bad, &value)) << bad;
  }
  EXPECT_EQ(value, 7u);
  EXPECT_TRUE(parse_hex("00b0", &value));
  EXPECT_EQ(value, 0xb0u);
  EXPECT_TRUE(parse_hex("FFFFffffFFFFffff", &value));
  EXPECT_EQ(value, ~0ull);
}

TEST(Text, ClipsAtALineEndAndSaysHowMuchIsGone) {
  EXPECT_EQ(clip("short", 10), "short");
  EXPECT_EQ(clip("first\nsecond\nthird", 14), "first\nsecond\n... (6 more bytes)");
  EXPECT_EQ(clip(std::string(100, 'x'), 10), "xxxxxxxxxx\n... (90 more bytes)");
}

TEST(Text, CutsLeaveCharactersWhole) {
  const std::string euro = "\xe2\x82\xac";
  EXPECT_EQ(utf8_prefix("ab", 2), "ab");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  for (const std::size_t most : {4u, 5u, 6u}) {
    EXPECT_EQ(utf8_prefix("a" + euro + euro, most), "a" + euro) << most;
  }
  EXPECT_EQ(utf8_prefix(euro, 2), "");
  EXPECT_EQ(utf8_prefix(std::string(9, '\x80'), 5).size(), 5u) << "no UTF-8: cut anywhere";
  EXPECT_EQ(clip(euro + euro, 4), euro + "\n... (3 more bytes)");
}

TEST(Text, PrintableKeepsUtf8AndDropsTheRest) {
  const std::string good = "plain \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\n\t";
  EXPECT_EQ(printable(good), good);
  EXPECT_EQ(printable("a\x1b[31mb\x7f\r"), "a?[31mb??");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "?");
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("\xc3"), "?");                 // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(printable("\xe0\x80\x80"), "???");       // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(printable("\xe2\x82"
                      "a"),
            "??a");
  // Commands to a terminal beyond ASCII: CSI as one character, and the direction of writing.
  EXPECT_EQ(printable("a\xc2\x9b"
                      "31mb"),
            "a?31mb");
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0");
  EXPECT_EQ(printable("x = 1; \xe2\x80\xae; y \xe2\x81\xa6"), "x = 1; ?; y ?");
  EXPECT_EQ(one_line("a\n## Rules\r\n\tb\x1b[2J"), "a ## Rules?  b?[2J");
}

TEST(Text, NothingInsideEndsAFence) {
  EXPECT_EQ(fenced("int x;", "cpp"), "```cpp\nint x;\n```\n");
  EXPECT_EQ(fenced("int x;\n"), "```\nint x;\n```\n");
  EXPECT_EQ(fenced(""), "```\n\n```\n");
  EXPECT_EQ(fenced("a\n```\n## Rules\n`````"), "``````\na\n```\n## Rules\n`````\n``````\n");
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(human_us(1.234), "1.23 us");
  EXPECT_EQ(human_us(45600), "45.6 ms");
  EXPECT_EQ(human_us(2.5e6), "2.50 s");
  EXPECT_EQ(human_bytes(1.5e9), "1.50 GB");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_seconds(5), "5.0 s");
  EXPECT_EQ(human_seconds(65), "1 min 05 s");
  EXPECT_EQ(human_seconds(3660), "1 h 01 min");
  EXPECT_EQ(number(0.12345, 3), "0.123");
}

}  // namespace
}  // namespace kernelpro
