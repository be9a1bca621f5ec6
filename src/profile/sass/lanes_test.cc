// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/lanes.h"

#include <gtest/gtest.h>

#include "profile/sass/lane_values.h"
#include "profile/sass/sass.h"

namespace kernelpro {
namespace {

int lane(const LaneTable& table, const LaneValue& value, std::size_t index) {
  return table.lanes(value.pattern)[index];
}

TEST(LaneValues, QuotientAndRemainderOfTheThread) {
  LaneTable table;
  const LaneValue thread = table.thread();
  const LaneValue row = table.shift_right(thread, LaneTable::literal(4));
  const LaneValue column = table.bit_and(thread, LaneTable::literal(15));
  EXPECT_EQ(lane(table, row, 15), 0);
  EXPECT_EQ(lane(table, row, 16), 1);
  EXPECT_EQ(lane(table, column, 17), 1);
  // Together they give the thread index again.
  const LaneValue again = table.add(table.scale(row, 16), column);
  EXPECT_EQ(again.pattern, thread.pattern);
  EXPECT_TRUE(table.shift_right(thread, LaneTable::literal(5)).uniform());
}

TEST(LaneValues, BlockTimesSizePlusThreadKeepsWarpsTogether) {
  LaneTable table;
  const LaneValue start = table.multiply(LaneTable::uniform(), LaneTable::uniform());
  const LaneValue index = table.add(start, table.thread());
  EXPECT_EQ(lane(table, table.bit_and(index, LaneTable::literal(7)), 9), 1);
  // Nothing is known if the start is arbitrary.
  const LaneValue anywhere = table.add(LaneTable::uniform(), table.thread());
  EXPECT_FALSE(table.bit_and(anywhere, LaneTable::literal(7)).known);
}

TEST(LaneValues, RunTimeFactorsOnlyTellLanesApart) {
  LaneTable table;
  const LaneValue rows = table.multiply(table.shift_right(table.thread(), LaneTable::literal(4)),
                                        LaneTable::uniform());
  EXPECT_TRUE(rows.known);
  EXPECT_FALSE(rows.uniform());
  EXPECT_EQ(table.lanes(rows.labels)[3], table.lanes(rows.labels)[12]);
  EXPECT_NE(table.lanes(rows.labels)[3], table.lanes(rows.labels)[19]);
  EXPECT_TRUE(table.multiply(LaneTable::uniform(), LaneTable::uniform()).uniform());
  EXPECT_FALSE(table.multiply(table.thread(), table.thread()).known);
}

TEST(LaneValues, Swizzle) {
  LaneTable table;
  const LaneValue eighth = table.shift_right(table.thread(), LaneTable::literal(3));
  const LaneValue low = table.bit_and(table.thread(), LaneTable::literal(7));
  const LaneValue swizzled = table.bit_xor(low, table.bit_and(eighth, LaneTable::literal(3)));
  EXPECT_EQ(lane(table, swizzled, 9), (9 & 7) ^ 1);
  EXPECT_EQ(lane(table, swizzled, 30), (30 & 7) ^ 3);
  const LaneValue middle = table.bit_and(table.thread(), LaneTable::literal(0x18));
  EXPECT_EQ(lane(table, middle, 30), 30 & 0x18);
}

TEST(LaneValues, PathsThatDisagreeLeaveNothing) {
  LaneTable table;
  const LaneValue a = table.thread(), b = table.scale(a, 4);
  EXPECT_TRUE(table.meet(a, a).known);
  EXPECT_FALSE(table.meet(a, b).known);
  EXPECT_TRUE(table.meet(LaneTable::literal(1), LaneTable::literal(2)).uniform());
}

std::vector<LaneAccess> of_code(const std::string& code) {
  std::string text = ".text.k:\n";
  int address = 0;
  for (std::size_t begin = 0; begin < code.size();) {
    const std::size_t end = std::min(code.find('\n', begin), code.size());
    char number[16];
    std::snprintf(number, sizeof number, "/*%04x*/ ", address);
    text += number + code.substr(begin, end - begin) + " ;\n";
    address += 16;
    begin = end + 1;
  }
  const std::vector<SassFunction> functions = parse_sass(text);
  return functions.empty() ? std::vector<LaneAccess>{} : lane_accesses(functions[0]);
}

TEST(LaneAccesses, SectorsAndBanks) {
  // tile[tid & 15][tid >> 4] of float, rows of 16: two rows of 64 bytes meet on each pair of banks.
  const auto tile = of_code(
      "S2R R0, SR_TID.X\n"
      "LOP3.LUT R1, R0, 0xf, RZ, 0xc0, !PT\n"
      "SHF.R.U32.HI R2, RZ, 0x4, R0\n"
      "LEA R3, R1, R2, 0x4\n"
      "IMAD.SHL.U32 R3, R3, 0x4, RZ\n"
      "LDS R4, [R3]\n"
      "LDS.128 R4, [R3]");
  ASSERT_EQ(tile.size(), 7u);
  EXPECT_TRUE(tile[5].known);
  EXPECT_EQ(tile[5].ways, 8);
  EXPECT_EQ(tile[5].stride, 0);
  // Rows of run-time length, 16 lanes each: two pieces of 64 bytes.
  const auto rows = of_code(
      "S2R R0, SR_TID.X\n"
      "LDC R9, c[0x0][0x210]\n"
      "LOP3.LUT R1, R0, 0xf, RZ, 0xc0, !PT\n"
      "SHF.R.U32.HI R2, RZ, 0x4, R0\n"
      "IMAD R3, R2, R9, R1\n"
      "IMAD.WIDE R4, R3, 0x4, R10\n"
      "LDC.64 R10, c[0x0][0x218]\n"
      "IMAD.WIDE R4, R3, 0x4, R10\n"
      "LDG.E R6, desc[UR4][R4.64]");
  ASSERT_EQ(rows.size(), 9u);
  EXPECT_TRUE(rows[8].known);
  EXPECT_TRUE(rows[8].runtime);
  EXPECT_EQ(rows[8].sectors, 4);
  EXPECT_EQ(rows[8].fewest_sectors, 4);
}

TEST(LaneAccesses, ALoopThatMovesByWhatItLoadsIsUnknown) {
  const auto chase = of_code(
      "S2R R0, SR_TID.X\n"
      "IMAD.SHL.U32 R2, R0, 0x4, RZ\n"
      "LDS R2, [R2]\n"
      "ISETP.NE.AND P0, PT, R2, RZ, PT\n"
      "@P0 BRA 0x20\n"
      "EXIT");
  ASSERT_EQ(chase.size(), 6u);
  EXPECT_FALSE(chase[2].known);
}

}  // namespace
}  // namespace kernelpro
