// SPDX-License-Identifier: Apache-2.0
// ncu's source page. The texts are written by hand after the layout that ncu 2022 to 2025 prints.
#include "profile/import/ncu_source.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "profile/sass/sass.h"

namespace kernelpro {
namespace {

const std::string kHeader =
    R"csv("Address","Source","Warp Stall Sampling (All Samples)","Warp Stall Sampling (Not-issued Samples)","Instructions Executed","# Samples","Address Space","stall_barrier","stall_long_sb","stall_selected","stall_sleep","stall_barrier (Not Issued)","stall_long_sb (Not Issued)","stall_selected (Not Issued)","stall_sleeping (Not Issued)"
)csv";
const std::string kRows =
    R"csv("0x7fc48541d900","      LDG.E R2, desc[UR4][R2.64] ","12","4","3632","12","Global","0","0","12","0","0","0","0","0"
"0x7fc48541d910","      FADD R4, R2, R3 ","1,050","900","3632","1,050","-","0","1,040","10","0","0","900","0","0"
"0x7fc48541d920","@!P0  BRA 0x7fc48541d900 ","0","0","3632","0","-","0","0","0","0","0","0","0","0"
"0x7fc48541d930","      BAR.SYNC.DEFER_BLOCKING 0x0 ","6","5","3632","6","-","4","0","0","2","3","0","0","2"
)csv";
const std::string kPage =
    "==PROF== Connected to process 1\n\"Kernel Name\",\"gather(float *, int)\",\n" + kHeader +
    kRows;

const StallSamples* stall_at(const PcSamples& pc, Stall stall) {
  for (const StallSamples& s : pc.stalls) {
    if (s.stall == stall) return &s;
  }
  return nullptr;
}

TEST(NcuSource, SamplesByInstruction) {
  EXPECT_TRUE(is_ncu_source_page(kPage));
  const NcuSourcePage page = read_ncu_source_page(kPage);
  EXPECT_EQ(page.samples.source, "ncu");
  ASSERT_EQ(page.samples.kernels.size(), 1u);
  const KernelSamples& kernel = page.samples.kernels[0];
  EXPECT_EQ(kernel.function, "gather(float *, int)");
  ASSERT_EQ(kernel.pcs.size(), 3u) << "without those that have none";
  EXPECT_EQ(kernel.pcs[0].offset, 0);
  EXPECT_EQ(kernel.pcs[1].offset, 16);
  EXPECT_EQ(kernel.pcs[2].offset, 48);
  const StallSamples* load = stall_at(kernel.pcs[1], Stall::kLongScoreboard);
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(load->all, 1040);
  EXPECT_EQ(load->exposed, 900);
  const StallSamples* sleep = stall_at(kernel.pcs[2], Stall::kSleeping);
  ASSERT_NE(sleep, nullptr) << "stall_sleep is stall_sleeping in the other half";
  EXPECT_EQ(sleep->all, 2);
  EXPECT_EQ(sleep->exposed, 2);
  EXPECT_TRUE(page.notes.empty());
}

TEST(NcuSource, CodeIsReadToo) {
  const NcuSourcePage page = read_ncu_source_page(kPage);
  const auto functions = parse_sass(page.sass);
  ASSERT_EQ(functions.size(), 1u) << page.sass;
  EXPECT_EQ(functions[0].name, "gather(float *, int)");
  ASSERT_EQ(functions[0].code.size(), 4u);
  EXPECT_EQ(functions[0].code[1].address, 16u);
  EXPECT_EQ(functions[0].code[2].guard, "@!P0");
  EXPECT_EQ(functions[0].code[2].operands, "0x0") << "a jump within the function";
}

TEST(NcuSource, LaunchesOfAKernelAddUp) {
  const std::string other = "\"Kernel Name\",\"other()\",\n" + kHeader + kRows;
  const NcuSourcePage page = read_ncu_source_page(kPage + other + kPage);
  ASSERT_EQ(page.samples.kernels.size(), 2u);
  EXPECT_EQ(stall_at(page.samples.kernels[0].pcs[1], Stall::kLongScoreboard)->all, 2080);
  EXPECT_EQ(stall_at(page.samples.kernels[1].pcs[1], Stall::kLongScoreboard)->all, 1040);
  EXPECT_EQ(parse_sass(page.sass).at(0).code.size(), 4u);
}

// Names spelled out, the function in each row, addresses within the function.
TEST(NcuSource, OtherVersions) {
  const NcuSourcePage page = read_ncu_source_page(
      R"csv("PC","Function Name","SASS","smsp__pcsamp_warps_issue_stalled_wait","smsp__pcsamp_warps_issue_stalled_wait_not_issued","smsp__pcsamp_warps_issue_stalled_no_instructions"
"/*0060*/","_Z4copyPf","FFMA R0, R1, R2, R3 ;","12","3",""
"0x70","_Z4copyPf","STG.E [R2], R4 ;","1,024","","-"
"0x70","_Z5otherv","EXIT ;","7","9","1"
)csv");
  ASSERT_EQ(page.samples.kernels.size(), 2u);
  const KernelSamples& copy = page.samples.kernels[0];
  EXPECT_EQ(copy.function, "_Z4copyPf");
  ASSERT_EQ(copy.pcs.size(), 2u);
  EXPECT_EQ(copy.pcs[0].offset, 0x60);
  EXPECT_EQ(copy.pcs[0].stalls.at(0).exposed, 3);
  EXPECT_EQ(copy.pcs[1].stalls.at(0).all, 1024);
  const auto& other = page.samples.kernels[1].pcs.at(0).stalls;
  EXPECT_LE(other.at(0).exposed, other.at(0).all);
}

TEST(NcuSource, NumberedRowsAndTheAuthorsSourceBeside) {
  const NcuSourcePage page = read_ncu_source_page(
      "\"Kernel Name\",\"k\"\n\"#\",\"Source\",\"# Samples\"\n"
      "\"1\",\"MOV R1, c[0x0][0x28]\",\"0\"\n\"2\",\"EXIT\",\"5\"\n");
  ASSERT_EQ(page.samples.kernels.size(), 1u);
  EXPECT_EQ(page.samples.kernels[0].pcs.at(0).offset, 16);
  EXPECT_EQ(page.samples.kernels[0].pcs[0].stalls.at(0).stall, Stall::kMisc) << "no reason given";
  EXPECT_FALSE(page.notes.empty());
  const NcuSourcePage both = read_ncu_source_page(
      "\"Kernel Name\",\"k\"\n\"Line\",\"Source\",\"Address\",\"Source\",\"stall_wait\"\n"
      "\"7\",\"y = x;\",\"0x7f0000000000\",\"EXIT\",\"5\"\n");
  EXPECT_TRUE(contains(both.sass, "EXIT")) << both.sass;
  EXPECT_FALSE(contains(both.sass, "y = x"));
}

TEST(NcuSource, WithoutSamplesItSaysWhy) {
  for (const std::string text : {"", "hello, world\n", "\"Kernel Name\",\"k\"\n"}) {
    EXPECT_FALSE(is_ncu_source_page(text));
    const NcuSourcePage page = read_ncu_source_page(text);
    EXPECT_TRUE(page.samples.source.empty());
    ASSERT_EQ(page.samples.missing.size(), 1u);
    EXPECT_EQ(page.samples.missing[0].family, Family::kSamples);
    EXPECT_FALSE(page.samples.missing[0].next.empty());
  }
}

TEST(NcuSource, CutOffAnywhere) {
  for (std::size_t length = 0; length < kPage.size(); length += 5) {
    static_cast<void>(read_ncu_source_page(kPage.substr(0, length)));
  }
}

}  // namespace
}  // namespace kernelpro
