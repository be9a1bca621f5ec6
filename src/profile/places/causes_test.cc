// SPDX-License-Identifier: Apache-2.0
#include "profile/places/causes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "profile/sass/sass.h"

namespace kernelpro {
namespace {

std::string on_line(int line, const std::string& code) {
  return "//## File \"/src/k.cu\", line " + std::to_string(line) + "\n" + code;
}

bool has(const std::map<std::string, CodeLines>& all, const std::string& name, int line) {
  const auto found = all.find(name);
  if (found == all.end()) return false;
  const auto& lines = found->second.lines;
  return std::any_of(lines.begin(), lines.end(),
                     [&](const SourceLine& each) { return each.line == line; });
}

TEST(CauseLines, ConditionsAddressesAndBlocks) {
  const auto functions =
      parse_sass(".target sm_90\n.text.k:\n" + on_line(5, "/*0000*/ S2R R0, SR_TID.X ;\n") +
                 on_line(6, "/*0010*/ LOP3.LUT R1, R0, 0x1, RZ, 0xc0, !PT ;\n") +
                 on_line(7, "/*0020*/ ISETP.NE.AND P0, PT, R1, RZ, PT ;\n") +
                 on_line(8, "/*0030*/ S2R R8, SR_CTAID.X ;\n") +
                 on_line(9, "/*0040*/ SHF.R.U32.HI R9, RZ, 0x3, R8 ;\n") +
                 on_line(10, "/*0050*/ IMAD.WIDE R2, R9, 0x4, R4 ;\n") +
                 on_line(11, "/*0060*/ @P0 BRA `(.L_x_0) ;\n") +
                 on_line(12, "/*0070*/ LDG.E R3, [R2.64] ;\n/*0080*/ STG.E [R2.64], R3 ;\n") +
                 ".L_x_0:\n" + on_line(13, "/*0090*/ EXIT ;\n"));
  ASSERT_EQ(functions.size(), 1u);
  const auto lines = cause_lines(functions[0]);
  EXPECT_TRUE(has(lines, "slice.branch", 6));
  EXPECT_TRUE(has(lines, "slice.branch", 7));
  EXPECT_FALSE(has(lines, "slice.branch", 10));
  EXPECT_TRUE(has(lines, "slice.global", 10));
  EXPECT_TRUE(has(lines, "slice.global", 9));
  EXPECT_FALSE(has(lines, "slice.global", 6));
  EXPECT_TRUE(has(lines, "slice.block", 9));
  EXPECT_FALSE(has(lines, "slice.block", 6));
  EXPECT_FALSE(has(lines, "slice.shared", 9));
  EXPECT_TRUE(cause_lines(SassFunction()).empty());
}

}  // namespace
}  // namespace kernelpro
