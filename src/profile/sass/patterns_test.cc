// SPDX-License-Identifier: Apache-2.0
// Counts in recorded disassembly of patterns.cu, one kernel per pattern, for four GPU generations.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "core/evidence/metrics.h"
#include "profile/sass/sass.h"

namespace kernelpro {
namespace {

const std::map<std::string, SassMix>& mixes(const std::string& arch) {
  static std::map<std::string, std::map<std::string, SassMix>> all;
  std::map<std::string, SassMix>& mine = all[arch];
  if (!mine.empty()) return mine;
  const Result<std::string> text = read_file(std::string(KERNELPRO_SOURCE_DIR) +
                                             "/src/profile/fixtures/patterns." + arch + ".txt");
  EXPECT_TRUE(text) << arch;
  if (!text) return mine;
  for (SassKernel& kernel : kernel_mixes(*text)) mine[kernel.name] = std::move(kernel.mix);
  return mine;
}

// The line of patterns.cu that holds `text` after the start of `kernel`.
std::string line_of(const std::string& kernel, const std::string& text) {
  const Result<std::string> source =
      read_file(std::string(KERNELPRO_SOURCE_DIR) + "/src/profile/fixtures/patterns.cu");
  int number = 0;
  bool inside = false;
  for (const std::string& line : lines(source ? *source : "")) {
    ++number;
    inside = inside || contains(line, "KERNEL " + kernel + "(");
    if (inside && contains(line, text)) return "patterns.cu:" + std::to_string(number);
  }
  return "";
}

class Patterns : public ::testing::TestWithParam<const char*> {
 protected:
  const SassMix& mix(const std::string& kernel) const {
    static const SassMix none;
    const auto found = mixes(GetParam()).find(kernel);
    EXPECT_NE(found, mixes(GetParam()).end()) << kernel;
    return found != mixes(GetParam()).end() ? found->second : none;
  }
  double hot(const std::string& kernel, const std::string& name) const {
    return value(kernel, "sass.hot." + name);
  }
  double loop(const std::string& kernel, const std::string& name) const {
    return value(kernel, "sass.loop." + name);
  }
  double value(const std::string& kernel, const std::string& name) const {
    const auto& metrics = mix(kernel).metrics;
    const auto found = metrics.find(name);
    EXPECT_NE(found, metrics.end()) << name;
    return found != metrics.end() ? found->second : -1;
  }
  std::string where(const std::string& kernel, const std::string& name) const {
    const auto& places = mix(kernel).where;
    const auto found = places.find("sass.hot." + name);
    std::string text;
    if (found == places.end()) return text;
    for (const SourceLine& line : found->second.lines) {
      text += (text.empty() ? "" : ", ") + line.file + ":" + std::to_string(line.line);
    }
    return text;
  }
};

// Every name that is set is registered, and every opcode is known.
TEST_P(Patterns, NamesAndOpcodesAreKnown) {
  EXPECT_EQ(mixes(GetParam()).size(), 34u);
  for (const auto& [kernel, mix] : mixes(GetParam())) {
    EXPECT_EQ(mix.metrics.at("sass.unknown_share"), 0) << kernel;
    EXPECT_EQ(mix.metrics.at("sass.control_codes"), 1) << kernel;
    for (const auto& [name, value] : mix.metrics) {
      EXPECT_NE(find_metric(name), nullptr) << name;
    }
    for (const auto& [name, place] : mix.where) EXPECT_NE(find_metric(name), nullptr) << name;
  }
}

TEST_P(Patterns, Divisions) {
  EXPECT_EQ(hot("integer_division", "integer_divisions"), 1);
  EXPECT_EQ(hot("integer_remainder", "integer_divisions"), 1);
  EXPECT_EQ(hot("long_division", "integer_divisions"), 1);
  EXPECT_EQ(hot("long_division", "division_calls"), 1);
  EXPECT_EQ(hot("constant_division", "integer_divisions"), 0);
  EXPECT_EQ(hot("precise_division", "precise_divisions"), 1);
  EXPECT_EQ(hot("precise_division", "slow_path_calls"), 1);
  EXPECT_EQ(hot("precise_division", "integer_divisions"), 0);
  EXPECT_EQ(where("precise_division", "precise_divisions"), line_of("precise_division", "/"));
}

// The path for large angles has a loop, 64-bit integers and fp64, but hardly any sine takes it.
TEST_P(Patterns, SlowPathsAreNotHot) {
  EXPECT_EQ(mix("sine").loops, 1);
  EXPECT_EQ(hot("sine", "trigonometric_slow_paths"), 1);
  EXPECT_EQ(hot("sine", "depth"), 1);
  EXPECT_EQ(hot("sine", "fp64"), 0);
  EXPECT_EQ(value("sine", "sass.local_stores"), 0);
  EXPECT_EQ(hot("sine", "global_loads"), 1);
  EXPECT_LT(hot("sine", "instructions"), 45);
}

TEST_P(Patterns, AccidentalDouble) {
  EXPECT_EQ(hot("accidental_double", "fp64"), 3);  // to fp64, a multiply-add, back
  EXPECT_EQ(hot("accidental_double", "fp64_conversions"), 2);
  EXPECT_EQ(where("accidental_double", "fp64"), line_of("accidental_double", "0.1"));
  EXPECT_EQ(hot("one_chain", "fp64"), 0);
}

TEST_P(Patterns, HalfPrecision) {
  EXPECT_EQ(hot("half_one_by_one", "half_math"), 1);
  EXPECT_EQ(hot("half_one_by_one", "half_scalar"), 1);
  EXPECT_EQ(hot("half_in_pairs", "half_math"), 1);
  EXPECT_EQ(hot("half_in_pairs", "half_scalar"), 0);
  EXPECT_EQ(hot("bf16_through_fp32", "half_conversions"), 2);
  EXPECT_EQ(hot("bf16_through_fp32", "half_conversions_scalar"), 1);
  EXPECT_EQ(hot("one_chain", "half_conversions"), 0);
}

TEST_P(Patterns, Chains) {
  EXPECT_EQ(loop("one_chain", "carried_cycles"), 64);  // 16 dependent multiply-adds of 4 cycles
  EXPECT_EQ(loop("one_chain", "carried_length"), 16);
  EXPECT_TRUE(mix("one_chain").chain.starts_with("16 x FFMA")) << mix("one_chain").chain;
  EXPECT_EQ(loop("four_chains", "carried_cycles"), 16);
  EXPECT_EQ(loop("one_chain", "instructions"), loop("four_chains", "instructions"));
  EXPECT_GE(loop("one_chain", "alone_cycles"), 64);
  EXPECT_LE(loop("four_chains", "alone_cycles"), 40);
  // Each address comes from the previous load.
  EXPECT_GE(loop("pointer_chase", "carried_cycles"), 600);
  EXPECT_TRUE(contains(mix("pointer_chase").chain, "LDG")) << mix("pointer_chase").chain;
  EXPECT_LT(loop("loads_in_flight", "carried_cycles"), 40);  // eight additions
}

TEST_P(Patterns, LoadsInFlight) {
  EXPECT_EQ(hot("loads_in_flight", "global_loads_in_flight"), 8);
  EXPECT_EQ(hot("loads_in_flight", "global_bytes_in_flight"), 32);
  EXPECT_EQ(hot("pointer_chase", "global_loads_in_flight"), 1);
  EXPECT_GT(loop("loads_in_flight", "load_use_cycles"), 25);
  EXPECT_EQ(hot("loads_in_flight", "waits_global"), 4);  // three boards, and one for the rest
  EXPECT_EQ(where("loads_in_flight", "waits_global"), line_of("loads_in_flight", "= x[i"));
  EXPECT_EQ(hot("conflicting_tile", "waits_shared"), 1);
  EXPECT_EQ(hot("precise_division", "waits_special"), 2);  // reciprocal, check
  EXPECT_EQ(hot("stages_in_flight", "async_groups"), 2);
  EXPECT_EQ(hot("stages_in_flight", "ldgsts"), 1);
  EXPECT_EQ(hot("stages_in_flight", "shared_loads"), 1);  // fillers left out
  EXPECT_EQ(where("stages_in_flight", "ldgsts"), line_of("stages_in_flight", "(i + 3) % 4"));
}

TEST_P(Patterns, SharedMemory) {
  EXPECT_EQ(hot("conflicting_tile", "shared_conflicting"), 1);
  EXPECT_EQ(hot("conflicting_tile", "shared_ways"), 32);
  EXPECT_EQ(hot("padded_tile", "shared_conflicting"), 0);
  EXPECT_EQ(hot("padded_tile", "shared_ways"), 1);
  EXPECT_EQ(hot("padded_tile", "barriers"), 2);
  EXPECT_LE(hot("padded_tile", "between_barriers"), 8);
  EXPECT_EQ(hot("padded_tile", "staged_copies"), 1);
  EXPECT_EQ(hot("stages_in_flight", "staged_copies"), 0);
  EXPECT_EQ(hot("padded_tile", "shared_loads_invariant"), 0);  // stored anew each time
}

TEST_P(Patterns, Lanes) {
  EXPECT_EQ(hot("far_lanes", "global_strided"), 1);
  EXPECT_EQ(hot("far_lanes", "global_lane_stride"), 32);
  EXPECT_EQ(hot("far_lanes", "global_unit_stride"), 1);
  EXPECT_EQ(where("far_lanes", "global_strided"), line_of("far_lanes", "* 8"));
  EXPECT_EQ(hot("row_per_thread", "global_strided"), 1);
  EXPECT_EQ(hot("loads_in_flight", "global_unit_stride"), 8);
  EXPECT_EQ(hot("loads_in_flight", "global_strided"), 0);
  EXPECT_EQ(hot("pointer_chase", "global_unit_stride"), 0);  // unknown
  EXPECT_EQ(hot("pointer_chase", "global_strided"), 0);
  EXPECT_EQ(hot("same_address", "global_uniform"), 1);
  EXPECT_EQ(hot("same_address", "global_loads_invariant"), 1);
  EXPECT_EQ(hot("three_fields", "global_strided_filled"), 3);
  EXPECT_EQ(hot("far_lanes", "global_strided_filled"), 0);
}

TEST_P(Patterns, NarrowNeighbours) {
  EXPECT_EQ(hot("four_neighbours", "global_loads_mergeable"), 4);
  EXPECT_EQ(hot("four_neighbours", "global_loads_merged"), 1);
  EXPECT_EQ(hot("three_fields", "global_loads_mergeable"), 0);  // 12 bytes apart: no vector fits
  EXPECT_EQ(hot("stencil", "global_loads_mergeable"), 0);       // the next lane's own
  EXPECT_EQ(hot("loads_in_flight", "global_loads_mergeable"), 0);
}

TEST_P(Patterns, Atomics) {
  EXPECT_EQ(hot("global_histogram", "global_atomics"), 1);
  EXPECT_EQ(hot("global_histogram", "global_atomics_returning"), 0);
  EXPECT_EQ(hot("shared_histogram", "shared_atomics"), 1);
  EXPECT_EQ(value("shared_histogram", "sass.global_atomics"), 0);
  EXPECT_EQ(value("maximum_by_cas", "sass.cas_loops"), 1);
  EXPECT_EQ(hot("maximum_by_cas", "cas"), 1);
  EXPECT_EQ(value("spin_lock", "sass.cas_loops"), 0);
  EXPECT_EQ(value("spin_lock", "sass.wait_loops"), 1);
  EXPECT_EQ(hot("spin_lock", "fences"), 1);
}

TEST_P(Patterns, Others) {
  EXPECT_EQ(hot("warp_sum", "shuffles"), 5);
  EXPECT_EQ(hot("warp_sum", "waits_shuffle"), 5);
  EXPECT_EQ(hot("constant_by_lane", "constant_loads_indexed"), 1);
  EXPECT_EQ(hot("constant_by_loop", "constant_loads_indexed"), 0);
  EXPECT_EQ(hot("not_fused", "fp32_fusable"), 1);
  EXPECT_EQ(hot("parted_lanes", "mufu_trigonometric"), 48);
  EXPECT_EQ(hot("parted_lanes", "divergent_regions"), 1);
  EXPECT_GE(hot("parted_lanes", "branches"), 1);
  EXPECT_EQ(hot("warp_sum", "branches"), 0);  // only the one that closes the loop
}

// Integers that are data are not counted as overhead.
TEST_P(Patterns, AddressArithmetic) {
  EXPECT_EQ(hot("not_fused", "address"), hot("not_fused", "integer"));
  EXPECT_LT(hot("integer_remainder", "address"), hot("integer_remainder", "integer") - 3);
}

// A separate function called in a loop is as hot as the call, and its loop is hotter.
TEST_P(Patterns, CalledFunctions) {
  EXPECT_GE(hot("calls_a_function", "depth"), 2);
  EXPECT_EQ(hot("calls_a_function", "fp32_fused"), 1);
  EXPECT_EQ(loop("calls_a_function", "carried_cycles"), 4);
}

INSTANTIATE_TEST_SUITE_P(Sass, Patterns,
                         ::testing::Values("sm_80", "sm_90a", "sm_100a", "sm_120a"));

// for (...) x[i] = x[i] * 0.5f, by nvcc 13.0 for sm_90a.
constexpr const char* kHalve = R"(.target sm_90a
.section .text.halve,"ax",@progbits
.other halve,@"STO_CUDA_ENTRY STV_DEFAULT"
halve:
.text.halve:
/*0000*/ LDC R1, c[0x0][0x28] ;
/*0010*/ S2R R7, SR_TID.X ;
/*0020*/ ULDC UR5, c[0x0][0x218] ;
/*0030*/ ISETP.GE.AND P0, PT, R7, UR5, PT ;
/*0040*/ @P0 EXIT ;
/*0050*/ LDC.64 R4, c[0x0][0x210] ;
/*0060*/ ULDC UR4, c[0x0][0x0] ;
/*0070*/ ULDC.64 UR6, c[0x0][0x208] ;
.L_x_0:
/*0080*/ IMAD.WIDE R2, R7, 0x4, R4 ;
/*0090*/ LDG.E R0, desc[UR6][R2.64] ;
/*00a0*/ IADD3 R7, R7, UR4, RZ ;
/*00b0*/ ISETP.GE.AND P0, PT, R7, UR5, PT ;
/*00c0*/ FMUL R9, R0, 0.5 ;
/*00d0*/ STG.E desc[UR6][R2.64], R9 ;
/*00e0*/ @!P0 BRA `(.L_x_0) ;
/*00f0*/ EXIT ;
)";

double updates_in(const std::string& text) {
  const auto mixes = kernel_mixes(text);
  EXPECT_EQ(mixes.size(), 1U);
  return mixes.empty() ? -1 : mixes[0].mix.metrics.at("sass.hot.global_updates");
}

TEST(Updates, AStoreToWhereTheIterationLoads) {
  const std::string text = kHalve;
  EXPECT_EQ(updates_in(text), 1);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const std::size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos);
    return updates_in(other.replace(at, from.size(), to));
  };
  EXPECT_EQ(changed("STG.E desc[UR6][R2.64]", "STG.E desc[UR6][R2.64+0x4]"), 0);
  EXPECT_EQ(changed("STG.E desc[UR6][R2.64]", "STG.E desc[UR6][R10.64]"), 0);
  // The address has moved on in between.
  EXPECT_EQ(changed("FMUL R9, R0, 0.5", "IMAD.WIDE R2, R7, 0x4, R4"), 0);
}

// What stands between the load and the store of such a loop.
double fusable_in(const std::string& sums) {
  std::string text = kHalve;
  const std::string product = "/*00c0*/ FMUL R9, R0, 0.5 ;\n";
  const std::size_t at = text.find(product);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, product.size(), sums);
  const auto mixes = kernel_mixes(text);
  EXPECT_EQ(mixes.size(), 1U);
  return mixes.empty() ? -1 : mixes[0].mix.metrics.at("sass.hot.fp32_fusable");
}

TEST(Fusable, AProductWhoseSumAnAdditionEnds) {
  EXPECT_EQ(fusable_in("/*00c0*/ FMUL R8, R0, R1 ;\n/*00c4*/ FADD R9, R8, R5 ;\n"), 1);
  const std::string first = "/*00c0*/ FMUL R8, R0, R1 ;\n/*00c4*/ FFMA R8, R0, R5, R8 ;\n";
  EXPECT_EQ(fusable_in(first + "/*00c8*/ FADD R9, R8, R6 ;\n"), 1);
  EXPECT_EQ(fusable_in(first + "/*00c8*/ FFMA R9, R0, R6, -R8 ;\n"), 0) << "nothing adds to it";
  EXPECT_EQ(fusable_in("/*00c0*/ FMUL R8, R0, R1 ;\n/*00c4*/ FFMA R8, R8, R5, R6 ;\n"
                       "/*00c8*/ FADD R9, R8, R6 ;\n"),
            0)
      << "it is multiplied";
  EXPECT_EQ(fusable_in("/*00c0*/ FMUL R8, R0, R1 ;\n/*00c4*/ FMUL R10, R0, R5 ;\n"
                       "/*00c8*/ FADD R9, R8, R10 ;\n"),
            1)
      << "one addition takes one of them in";
}

}  // namespace
}  // namespace kernelpro
