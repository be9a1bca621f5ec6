// SPDX-License-Identifier: Apache-2.0
// The fixtures are disassembly of kernels.cu, hopper.cu and blackwell.cu, recorded with the
// versions named in their first lines.
#include "profile/sass/sass.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

std::vector<SassFunction> fixture(const std::string& name) {
  const Result<std::string> text =
      read_file(std::string(KERNELPRO_SOURCE_DIR) + "/src/profile/fixtures/" + name);
  EXPECT_TRUE(text) << name;
  return text ? parse_sass(*text) : std::vector<SassFunction>{};
}

SassMix mix_of(const std::string& file, const std::string& kernel) {
  for (const SassFunction& function : fixture(file)) {
    if (function.name == kernel) return hot_mix(function);
  }
  ADD_FAILURE() << "no kernel " << kernel << " in " << file;
  return {};
}

class EveryArch : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file() const { return std::string("sm_") + GetParam() + ".nvdisasm.txt"; }
};

TEST_P(EveryArch, NamesItsArchitecture) {
  for (const SassFunction& function : fixture(file())) {
    EXPECT_EQ(function.arch, std::string("sm_") + GetParam());
    EXPECT_FALSE(function.code.empty());
  }
}

// for (...) y[i] = 2 * x[i] on float4, unrolled four times with a remainder loop.
TEST_P(EveryArch, WideLoadsOfTheMainLoopOnly) {
  SassMix mix = mix_of(file(), "copy128");
  EXPECT_EQ(mix.loops, 1);
  EXPECT_EQ(mix.metrics["sass.hot.global_loads"], 4);
  EXPECT_EQ(mix.metrics["sass.hot.global_loads_128"], 4);
  EXPECT_EQ(mix.metrics["sass.hot.global_stores_128"], 4);
  EXPECT_EQ(mix.metrics["sass.hot.ffma"], 16);
  EXPECT_EQ(mix.metrics["sass.hmma"], 0);
}

// One signed char and one double an iteration, a division in fp64.
TEST_P(EveryArch, NarrowLoadsAndFp64) {
  SassMix mix = mix_of(file(), "narrow");
  EXPECT_EQ(mix.metrics["sass.hot.global_loads_narrow"], 1);
  EXPECT_EQ(mix.metrics["sass.hot.global_loads_64"], 1);
  EXPECT_GE(mix.metrics["sass.hot.fp64"], 6);
  EXPECT_GE(mix.metrics["sass.hot.mufu"], 1);
}

TEST_P(EveryArch, LocalMemoryInTheLoop) {
  SassMix mix = mix_of(file(), "spill");
  EXPECT_GE(mix.metrics["sass.hot.local_loads"], 1);
  EXPECT_GE(mix.metrics["sass.hot.local_stores"], 1);
  EXPECT_GE(mix.metrics["sass.local_stores"], 16);
}

TEST_P(EveryArch, MatrixInstructions) {
  SassMix mix = mix_of(file(), "wmma_kernel");
  EXPECT_EQ(mix.metrics["sass.hmma"], 10);
  EXPECT_EQ(mix.metrics["sass.hgmma"], 0);
}

INSTANTIATE_TEST_SUITE_P(Sass, EveryArch, ::testing::Values("80", "90a", "100a", "120"));

// The recording of nvdisasm has no encodings, that of cuobjdump no names of called helpers.
TEST(Sass, BothDisassemblersGiveTheSame) {
  for (const char* kernel : {"copy128", "softmax_scalar"}) {
    const SassMix a = mix_of("sm_90a.nvdisasm.txt", kernel);
    const SassMix b = mix_of("sm_90a.cuobjdump.txt", kernel);
    EXPECT_EQ(a.loops, b.loops);
    EXPECT_EQ(a.metrics.at("sass.control_codes"), 0);
    EXPECT_EQ(b.metrics.at("sass.control_codes"), 1);
    for (const auto& [name, value] : a.metrics) {
      const bool of_encoding = name == "sass.control_codes" || name.starts_with("sass.loop.") ||
                               name.starts_with("sass.hot.waits_");
      const bool of_helpers = contains(name, "call") || contains(name, "_in_flight");
      const bool of_cold =
          kernel == std::string("softmax_scalar") &&
          (contains(name, "instructions") || contains(name, "bytes") || contains(name, "moves"));
      if (of_encoding || of_helpers || of_cold) continue;
      EXPECT_EQ(value, b.metrics.at(name)) << kernel << " " << name;
    }
  }
}

TEST(Sass, EveryPassOverTheRowIsHot) {
  SassMix mix = mix_of("sm_90a.nvdisasm.txt", "softmax_scalar");
  EXPECT_EQ(mix.metrics["sass.hot.global_loads_32"], 3);  // maximum, sum, result
  EXPECT_EQ(mix.metrics["sass.hot.global_loads"], 3);
  EXPECT_EQ(mix.metrics["sass.hot.global_stores"], 1);
  EXPECT_GE(mix.metrics["sass.hot.mufu"], 2);
}

TEST(Sass, AKernelWithoutLoopsIsCountedWhole) {
  SassMix mix = mix_of("sm_90a.nvdisasm.txt", "straight");
  EXPECT_EQ(mix.loops, 0);
  EXPECT_EQ(mix.metrics["sass.hot.global_loads_32"], 1);
  EXPECT_EQ(mix.metrics["sass.hot.global_stores"], 1);
  EXPECT_EQ(mix.metrics["sass.hot.ffma"], 1);
  EXPECT_LT(mix.metrics["sass.hot.instructions"], 25);  // no padding
}

TEST(Sass, WaitLoopsAreNotHot) {
  SassMix mix = mix_of("hopper.nvdisasm.txt", "wgmma_wait");
  EXPECT_EQ(mix.loops, 1);
  EXPECT_GE(mix.metrics["sass.hgmma"], 1);
  EXPECT_TRUE(contains(mix.text, "HGMMA")) << mix.text;
}

TEST(Sass, FifthGenerationMatrixInstructions) {
  SassMix mix = mix_of("blackwell.nvdisasm.txt", "tcgen05_loop");
  EXPECT_GE(mix.metrics["sass.hgmma"], 1);
}

TEST(Sass, ControlCodesAndLines) {
  const std::vector<SassFunction> f = parse_sass(
      ".target sm_90\n.text.k:\n"
      "//## File \"/usr/include/cuda_fp16.hpp\", line 9 inlined at \"/src/k.cu\", line 41\n"
      "//## File \"/src/k.cu\", line 41 inlined at \"/src/k.cu\", line 7\n"
      "/*0080*/ LDG.E.64 R16, desc[UR4][R16.64] ; /* 0x0000000410107981 */\n"
      "/* 0x002ea2000c1e1b00 */\n"
      "//## File \"/src/k.cu\", line 12\n"
      "/*0090*/ @!PT LDS RZ, [RZ] ; /* 0x0 */\n/* 0x000fe20000000800 */\n"
      "/*00a0*/ FROB.NEW R1, R2 ; /* 0x0 */\n/* 0x000fe20000000800 */\n");
  ASSERT_EQ(f.size(), 1u);
  ASSERT_EQ(f[0].code.size(), 3u);
  const SassInstruction& load = f[0].code[0];
  EXPECT_EQ(f[0].files.at(static_cast<std::size_t>(load.file)), "k.cu");
  EXPECT_EQ(load.line, 41);  // the author's line, not the header's, nor its call site
  EXPECT_EQ(f[0].folders.at(static_cast<std::size_t>(load.file)), "/src");
  ASSERT_GE(load.calls, 0);
  EXPECT_EQ(f[0].calls.at(static_cast<std::size_t>(load.calls)),
            (std::vector<std::pair<int, int>>{{load.file, 7}}));
  EXPECT_EQ(f[0].code[2].calls, -1);
  EXPECT_TRUE(load.control.known);
  EXPECT_EQ(load.control.stall, 1);
  EXPECT_EQ(load.control.written_by, 2);
  EXPECT_EQ(load.control.read_by, 7);
  EXPECT_EQ(load.control.waits, 2);
  EXPECT_EQ(f[0].code[1].root, "NOP");
  EXPECT_EQ(f[0].code[2].line, 12);
  SassMix mix = hot_mix(f[0]);
  EXPECT_EQ(mix.metrics["sass.unknown_share"], 0.5);
  const CodeLines& lines = mix.where["sass.hot.global_loads_64"];
  ASSERT_EQ(lines.lines.size(), 1u);
  EXPECT_EQ(lines.lines[0].file, "k.cu");
  EXPECT_EQ(lines.lines[0].line, 41);
  ASSERT_EQ(lines.callers.size(), 1u);
  EXPECT_EQ(lines.callers[0].line, 7);
}

// Non-kernel functions are skipped if the text distinguishes them.
TEST(Sass, KernelsOnly) {
  const std::vector<SassKernel> kernels = kernel_mixes(
      ".other k,@\"STO_CUDA_ENTRY STV_DEFAULT\"\n.text.k:\n/*0000*/ EXIT ;\n"
      ".section .text.f\n.text.f:\n/*0000*/ RET.REL.NODEC R20 0x0 ;\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "k");
}

// Two loops: the first has more instructions, the second calls a division.
constexpr char kTwoLoops[] =
    ".text.k:\n"
    ".L_x_0:\n"
    "/*0000*/ LDG.E R2, [R4] ;\n/*0010*/ FFMA R6, R2, R2, R6 ;\n"
    "/*0020*/ FFMA R7, R2, R2, R7 ;\n/*0030*/ FFMA R8, R2, R2, R8 ;\n"
    "/*0040*/ @P0 BRA `(.L_x_0) ;\n"
    ".L_x_1:\n"
    "/*0050*/ CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_u64) ;\n"
    "/*0060*/ IADD3 R9, R9, 0x1, RZ ;\n/*0070*/ @P1 BRA `(.L_x_1) ;\n"
    "/*0080*/ STG.E [R4], R9 ;\n/*0090*/ EXIT ;\n"
    "$__internal_0_$__cuda_sm20_div_u64:\n"
    "/*00a0*/ MUFU.RCP R10, R11 ;\n/*00b0*/ RET.REL.NODEC R20 0x0 ;\n";

KernelSamples samples_at(std::initializer_list<std::pair<int, double>> pcs) {
  KernelSamples samples{"k", {}};
  for (const auto& [offset, all] : pcs) samples.pcs.push_back({offset, {{Stall::kWait, all, all}}});
  return samples;
}

TEST(Sass, SamplesTellWhichLoopIsHot) {
  const std::vector<SassFunction> f = parse_sass(kTwoLoops);
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(hot_mix(f[0]).metrics.at("sass.hot.ffma"), 3);
  // What a helper costs belongs to its caller.
  const KernelSamples helper = samples_at({{0x10, 20}, {0xa0, 300}});
  const SassMix called = hot_mix(f[0], &helper);
  EXPECT_EQ(called.metrics.at("sass.hot.ffma"), 0);
  EXPECT_EQ(called.metrics.at("sass.hot.division_calls"), 1);
  const KernelSamples tail = samples_at({{0x10, 20}, {0x80, 300}});
  EXPECT_EQ(hot_mix(f[0], &tail).metrics.at("sass.hot.global_stores"), 1);
  const KernelSamples few = samples_at({{0x80, 30}});
  EXPECT_EQ(hot_mix(f[0], &few).metrics.at("sass.hot.ffma"), 3);
}

// Rounds of a hash, of which only a comparison at the end is used, are no arithmetic of addresses.
TEST(Sass, IntegersThatReachNoAddressAreData) {
  const std::vector<SassFunction> f = parse_sass(
      ".text.k:\n.L_x_0:\n"
      "/*0000*/ SHF.L.W.U32.HI R2, R3, 0x7, R3 ;\n/*0010*/ LOP3.LUT R3, R2, R4, R3, 0x96, !PT ;\n"
      "/*0020*/ IADD3 R4, R4, R3, R2 ;\n/*0030*/ ISETP.NE.AND P1, PT, R4, RZ, PT ;\n"
      "/*0040*/ IADD3 R9, R9, 0x1, RZ ;\n/*0050*/ ISETP.NE.AND P0, PT, R9, 0x40, P1 ;\n"
      "/*0060*/ @P0 BRA `(.L_x_0) ;\n/*0070*/ EXIT ;\n");
  ASSERT_EQ(f.size(), 1u);
  EXPECT_LE(hot_mix(f[0]).metrics.at("sass.hot.address"), 2);  // the counter, and its comparison
}

TEST(Sass, NonsenseGivesNothing) {
  EXPECT_TRUE(parse_sass("").empty());
  EXPECT_TRUE(parse_sass("/*0000*/ EXIT ;").empty());
  const std::vector<SassFunction> f =
      parse_sass(".text.k:\n/*zz*/ FOO ;\n/*0000*/ ;\n/*10*/ @\n/*20*/ BRA `( ;\n");
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(hot_mix(f[0]).loops, 0);
}

}  // namespace
}  // namespace kernelpro
