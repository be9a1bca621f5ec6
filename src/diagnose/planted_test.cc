// SPDX-License-Identifier: Apache-2.0
// Full diagnoses of recorded kernels with known flaws: planted ones, or ones whose gain the search
// later measured. The recordings are real (fixtures/*.json).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "diagnose/diagnose.h"
#include "diagnose/tools.h"

namespace kernelpro {
namespace {

struct Truth {
  std::string recording;
  std::string first;   // the first finding's tool; "" = no finding
  std::string tag;     // of its first prescription
  std::string mended;  // recording of the same task without that flaw; "" = none
};

const std::vector<Truth> kTruths = {
    {"axpy-many_launches", "launch-bound", "algorithm", "axpy-sound"},
    {"axpy-one_block", "small-grid", "grid-size", "axpy-sound"},
    {"axpy-scalar", "scalar-loads", "vectorize", "axpy-sound"},
    {"axpy-sound", "at-bandwidth-ceiling", "algorithm", ""},
    {"gemm_bf16-ffma", "missing-tensor-cores", "tensor-cores", "gemm_bf16-wmma"},
    {"gemm_bf16-wmma", "missing-tensor-cores", "tensor-cores", ""},
    {"mix-spill", "register-spill", "registers", "mix-sound"},
    {"mix-sound", "", "", ""},
    // Candidates of real searches.
    {"h200-softmax-default", "scalar-loads", "vectorize", ""},
    {"h200-softmax-narrow", "scalar-loads", "vectorize", "h200-softmax-wide"},
    {"h200-softmax-wide", "far-from-both-ceilings", "passes", ""},
    {"h200-softmax-two-warps", "", "", ""},
    {"h200-softmax-ceiling", "at-bandwidth-ceiling", "algorithm", ""},
    {"h200-matmul-default", "far-from-both-ceilings", "tile-size", ""},
    {"h200-matmul-tail", "small-grid", "grid-size", ""},
    {"h200-matmul-wide", "", "", ""},
    {"cpu-softmax-default", "scalar-code", "vectorize", ""},
    {"cpu-softmax-packed", "far-from-both-ceilings", "passes", ""},
    {"cpu-matmul-scalar", "scalar-code", "vectorize", "cpu-matmul-vec4"},
    {"cpu-matmul-vec4", "one-thread-busy", "threads", ""},
    {"cpu-matmul-one-thread", "one-thread-busy", "threads", "cpu-matmul-both"},
    {"cpu-matmul-both", "far-from-both-ceilings", "tile-size", ""},
    // Pairs of tests/flaws.
    {"flaw-bias_clip-framework_style", "unfused-kernels", "fusion",
     "flaw-bias_clip-framework_style-mended"},
    {"flaw-box_blur3-general_strides", "address-overhead", "index-arithmetic",
     "flaw-box_blur3-general_strides-mended"},
    {"flaw-column_sort-tight_bounds", "register-spill", "registers",
     "flaw-column_sort-tight_bounds-mended"},
    {"flaw-conv7-all_taps_global", "missing-shared-memory-tiling", "shared-memory",
     "flaw-conv7-all_taps_global-mended"},
    {"flaw-depth_filter-plane_after_plane", "l2-locality", "block-order",
     "flaw-depth_filter-plane_after_plane-mended"},
    {"flaw-embedding-zeroed_first", "device-copies", "passes",
     "flaw-embedding-zeroed_first-mended"},
    {"flaw-four_maps-channel_by_lane", "divergence", "divergence",
     "flaw-four_maps-channel_by_lane-mended"},
    {"flaw-gemm_fp16-copies_through_registers", "missing-tensor-cores", "tensor-cores",
     "flaw-gemm_fp16-copies_through_registers-mended"},
    {"flaw-gemm_fp16-fp32_multiply_adds", "missing-tensor-cores", "tensor-cores",
     "flaw-gemm_fp16-fp32_multiply_adds-mended"},
    {"flaw-hadamard_fp16-row_of_32", "bank-conflicts", "bank-layout",
     "flaw-hadamard_fp16-row_of_32-mended"},
    {"flaw-histogram-straight_to_global", "atomics-contention", "atomics",
     "flaw-histogram-straight_to_global-mended"},
    {"flaw-large_sine-slow_path", "expensive-math", "fast-math",
     "flaw-large_sine-slow_path-mended"},
    {"flaw-layernorm_rows-slice_by_slice", "launch-bound", "algorithm",
     "flaw-layernorm_rows-slice_by_slice-mended"},
    {"flaw-linear_fp16-warp_mma", "missing-tensor-cores", "tensor-cores",
     "flaw-linear_fp16-warp_mma-mended"},
    {"flaw-long_reduce-block_per_row", "small-grid", "grid-size",
     "flaw-long_reduce-block_per_row-mended"},
    {"flaw-long_reduce-one_load_at_a_time", "low-memory-parallelism", "unroll",
     "flaw-long_reduce-one_load_at_a_time-mended"},
    {"flaw-masked_fp16-byte_loads", "scalar-loads", "vectorize",
     "flaw-masked_fp16-byte_loads-mended"},
    {"flaw-matmul_fp32-from_global", "missing-shared-memory-tiling", "shared-memory",
     "flaw-matmul_fp32-from_global-mended"},
    {"flaw-mode16-local_counters", "register-spill", "unroll", "flaw-mode16-local_counters-mended"},
    {"flaw-move_payload_bf16-unaligned_packs", "uncoalesced-access", "vectorize",
     "flaw-move_payload_bf16-unaligned_packs-mended"},
    {"flaw-moving_average-kernel_per_step", "launch-bound", "algorithm",
     "flaw-moving_average-kernel_per_step-mended"},
    {"flaw-mulaw-table_in_constant_memory", "constant-cache", "shared-memory",
     "flaw-mulaw-table_in_constant_memory-mended"},
    {"flaw-particles-record_per_thread", "uncoalesced-access", "layout",
     "flaw-particles-record_per_thread-mended"},
    {"flaw-permute4-unravel", "integer-division", "index-arithmetic",
     "flaw-permute4-unravel-mended"},
    {"flaw-relax_ode-all_steps_unrolled", "instruction-cache", "unroll",
     "flaw-relax_ode-all_steps_unrolled-mended"},
    {"flaw-relax_ode-double_literals", "accidental-fp64", "precision",
     "flaw-relax_ode-double_literals-mended"},
    {"flaw-relax_ode-powf", "expensive-math", "fast-math", "flaw-relax_ode-powf-mended"},
    {"flaw-relax_ode-wave_and_a_bit", "small-grid", "grid-size",
     "flaw-relax_ode-wave_and_a_bit-mended"},
    {"flaw-rmsnorm_bf16-through_fp32", "unfused-kernels", "fusion",
     "flaw-rmsnorm_bf16-through_fp32-mended"},
    {"flaw-rotary-copy_in_copy_out", "device-copies", "passes",
     "flaw-rotary-copy_in_copy_out-mended"},
    {"flaw-row_abs_sum-tree_per_chunk", "excessive-barriers", "synchronization",
     "flaw-row_abs_sum-tree_per_chunk-mended"},
    {"flaw-row_stats-mean_then_variance", "re-read-excess", "passes",
     "flaw-row_stats-mean_then_variance-mended"},
    {"flaw-row_walk-generous_path", "occupancy-limiter", "shared-memory",
     "flaw-row_walk-generous_path-mended"},
    {"flaw-row_walk-one_warp_blocks", "occupancy-limiter", "block-size",
     "flaw-row_walk-one_warp_blocks-mended"},
    {"flaw-saxpy-chunk_per_thread", "uncoalesced-access", "layout",
     "flaw-saxpy-chunk_per_thread-mended"},
    {"flaw-segment_sum-compare_and_swap", "atomics-contention", "atomics",
     "flaw-segment_sum-compare_and_swap-mended"},
    {"flaw-series_walk-coefficients_in_registers", "register-pressure", "tile-size",
     "flaw-series_walk-coefficients_in_registers-mended"},
    {"flaw-silu_bf16-double_exp", "accidental-fp64", "precision",
     "flaw-silu_bf16-double_exp-mended"},
    {"flaw-silu_bf16-one_element", "scalar-loads", "vectorize",
     "flaw-silu_bf16-one_element-mended"},
    {"flaw-small_softmax-warp_per_row", "divergence", "divergence",
     "flaw-small_softmax-warp_per_row-mended"},
    {"flaw-softmax_long-three_passes", "re-read-excess", "passes",
     "flaw-softmax_long-three_passes-mended"},
    {"flaw-sum8-eight_sums", "atomics-contention", "atomics", "flaw-sum8-eight_sums-mended"},
    {"flaw-swiglu-four_kernels", "unfused-kernels", "fusion", "flaw-swiglu-four_kernels-mended"},
    {"flaw-transpose-square_tile", "bank-conflicts", "bank-layout",
     "flaw-transpose-square_tile-mended"},
    {"flaw-transpose-strided_store", "uncoalesced-access", "layout",
     "flaw-transpose-strided_store-mended"},
    {"flaw-attention_fp32-thread_per_query", "register-spill", "registers",
     "flaw-attention_fp32-thread_per_query-mended"},
    {"flaw-balance_bf16-float_between", "unfused-kernels", "fusion",
     "flaw-balance_bf16-float_between-mended"},
    {"flaw-bias_gradient-add_each", "atomics-contention", "atomics",
     "flaw-bias_gradient-add_each-mended"},
    {"flaw-blur9_fp16-odd_pitch", "uncoalesced-access", "vectorize",
     "flaw-blur9_fp16-odd_pitch-mended"},
    {"flaw-column_hash-modulus_as_argument", "integer-division", "index-arithmetic",
     "flaw-column_hash-modulus_as_argument-mended"},
    {"flaw-crc32-byte_after_byte", "dependent-chain", "unroll",
     "flaw-crc32-byte_after_byte-mended"},
    {"flaw-decode_fp16-load_then_attend", "synchronous-staging", "pipeline",
     "flaw-decode_fp16-load_then_attend-mended"},
    {"flaw-event_means-block_per_window", "load-imbalance", "work-distribution",
     "flaw-event_means-block_per_window-mended"},
    {"flaw-expert_gate-first_lane_looks", "divergence", "divergence",
     "flaw-expert_gate-first_lane_looks-mended"},
    {"flaw-farthest_points-tree_per_pick", "excessive-barriers", "synchronization",
     "flaw-farthest_points-tree_per_pick-mended"},
    {"flaw-film_maps-sample_after_sample", "l2-locality", "block-order",
     "flaw-film_maps-sample_after_sample-mended"},
    {"flaw-frame_window-window_in_constant_memory", "constant-cache", "shared-memory",
     "flaw-frame_window-window_in_constant_memory-mended"},
    {"flaw-from_morton-bit_by_bit", "address-overhead", "index-arithmetic",
     "flaw-from_morton-bit_by_bit-mended"},
    {"flaw-kepler-orbit_by_lane", "divergence", "divergence", "flaw-kepler-orbit_by_lane-mended"},
    {"flaw-layernorm_rows-every_thread_adds", "atomics-contention", "atomics",
     "flaw-layernorm_rows-every_thread_adds-mended"},
    {"flaw-mix_bank-code_for_each", "instruction-cache", "unroll",
     "flaw-mix_bank-code_for_each-mended"},
    {"flaw-padded_bags-stop_at_padding", "low-memory-parallelism", "unroll",
     "flaw-padded_bags-stop_at_padding-mended"},
    {"flaw-pose_matrices-field_stores", "uncoalesced-access", "layout",
     "flaw-pose_matrices-field_stores-mended"},
    {"flaw-potentials-four_blocks_over", "small-grid", "grid-size",
     "flaw-potentials-four_blocks_over-mended"},
    {"flaw-running_offsets-single_block", "small-grid", "grid-size",
     "flaw-running_offsets-single_block-mended"},
    {"flaw-scatter_add_fp16-words_swapped", "atomics-contention", "atomics",
     "flaw-scatter_add_fp16-words_swapped-mended"},
    {"flaw-scores_bf16-widened_first", "missing-tensor-cores", "tensor-cores",
     "flaw-scores_bf16-widened_first-mended"},
    {"flaw-top8_columns-insertion", "register-spill", "unroll",
     "flaw-top8_columns-insertion-mended"},
    {"flaw-tree_search-deep_stack", "occupancy-limiter", "shared-memory",
     "flaw-tree_search-deep_stack-mended"},
    // The same without hardware counters, from machine code and time alone.
    {"flaw-histogram-straight_to_global-uncounted", "atomics-contention", "atomics", ""},
    {"flaw-layernorm_rows-slice_by_slice-uncounted", "launch-bound", "algorithm", ""},
    {"flaw-matmul_fp32-from_global-uncounted", "missing-shared-memory-tiling", "shared-memory", ""},
    {"flaw-mode16-local_counters-uncounted", "register-spill", "unroll", ""},
    {"flaw-mulaw-table_in_constant_memory-uncounted", "constant-cache", "shared-memory", ""},
    {"flaw-permute4-unravel-uncounted", "integer-division", "index-arithmetic", ""},
    {"flaw-row_abs_sum-tree_per_chunk-uncounted", "excessive-barriers", "synchronization", ""},
    {"flaw-row_walk-generous_path-uncounted", "occupancy-limiter", "shared-memory", ""},
    {"flaw-swiglu-four_kernels-uncounted", "unfused-kernels", "fusion", ""},
    // Its sound kernels: no finding, "stop", or a remark.
    {"flaw-conv7-sound-tiled", "", "", ""},
    {"flaw-copy-sound-grid_stride", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-embedding-sound-block_per_row", "", "", ""},
    {"flaw-histogram-sound-privatised", "", "", ""},
    {"flaw-linear_fp16-sound-warp_groups", "excessive-barriers", "synchronization", ""},
    {"flaw-masked_fp16-sound-sixteen", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-permute4-sound-rows", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-rmsnorm_bf16-sound-warp_per_row", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-row_abs_sum-sound-warp_shuffles", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-row_argmax-sound-packed_keys", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-row_scan-sound-block_scan", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-saxpy-sound-vector", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-silu_bf16-sound-packed", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-small_attention-sound-warp_tiles", "", "", ""},
    {"flaw-softmax_long-sound-staged", "", "", ""},
    {"flaw-swiglu-sound-fused", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-transpose-sound-tiled", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-cross_entropy_bf16-sound-registers", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-gemv_bf16-sound-warp_per_row", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-heat3d-sound-marching", "", "", ""},
    {"flaw-layernorm_rows-sound-registers", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-residual_gelu_bf16-sound-packed", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-small_products_fp16-sound-block_each", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-softmax_fp16-sound-warp_per_row", "at-bandwidth-ceiling", "algorithm", ""},
    {"flaw-transpose_bf16-sound-words", "", "", ""},
};

Evidence recorded(const std::string& name) {
  const std::string path =
      std::string(KERNELPRO_SOURCE_DIR) + "/src/diagnose/fixtures/" + name + ".json";
  const auto json = nlohmann::ordered_json::parse(*read_file(path));
  const auto evidence = evidence_from_json(json.at("evidence").dump());
  EXPECT_TRUE(evidence.has_value()) << name;
  return evidence.value_or(Evidence());
}

TEST(Planted, TheFlawComesFirst) {
  for (const Truth& truth : kTruths) {
    Diagnosis diagnosis = diagnose(recorded(truth.recording));
    // Another design is better than mending the flaw, and no flaw.
    std::erase_if(diagnosis.findings, [](const Finding& f) { return f.another_unit; });
    const bool none = diagnosis.findings.empty();
    ASSERT_EQ(none ? "" : diagnosis.findings[0].tool, truth.first) << truth.recording;
    if (none) continue;
    EXPECT_EQ(diagnosis.findings[0].prescriptions.at(0).tag, truth.tag) << truth.recording;
    EXPECT_EQ(diagnosis.findings[0].stop, truth.first.rfind("at-", 0) == 0) << truth.recording;
  }
}

// The upper gain is a bound, and the likely one is within a factor of three of the measured gain.
TEST(Planted, GainsHoldAgainstTheMendedKernel) {
  int pairs = 0;
  for (const Truth& truth : kTruths) {
    if (truth.mended.empty()) continue;
    ++pairs;
    const Evidence flawed = recorded(truth.recording);
    const double won = *flawed.get("timing.median") / *recorded(truth.mended).get("timing.median");
    const Finding finding = diagnose(flawed).findings.at(0);
    SCOPED_TRACE(truth.recording + " won " + std::to_string(won) + ", likely " +
                 std::to_string(finding.likely_speedup) + ", upper " +
                 std::to_string(finding.upper_speedup));
    EXPECT_LE(won, finding.upper_speedup);
    EXPECT_LE(finding.likely_speedup, finding.upper_speedup);
    EXPECT_LT(finding.likely_speedup, 3 * won);
    EXPECT_LT(won, 3 * finding.likely_speedup);
  }
  EXPECT_GE(pairs, 8);
}

TEST(Planted, CatchAllsComeLast) {
  for (const Truth& truth : kTruths) {
    const Diagnosis diagnosis = diagnose(recorded(truth.recording));
    bool before = true;
    for (const Finding& finding : diagnosis.findings) {
      const bool catch_all =
          finding.tool == "far-from-both-ceilings" || finding.tool == "dominant-stall";
      EXPECT_TRUE(before || catch_all) << truth.recording << ": " << finding.tool;
      before = before && !catch_all;
    }
  }
}

TEST(Planted, SoundKernelsAreSaidToBeAtTheCeiling) {
  const Diagnosis diagnosis = diagnose(recorded("axpy-sound"));
  EXPECT_GT(diagnosis.fraction_of_ceiling, 1);
  EXPECT_NE(diagnosis.summary.find("at the ceiling"), std::string::npos) << diagnosis.summary;
  EXPECT_NE(diagnosis.findings.at(0).cause.find("at the ceiling"), std::string::npos);
}

// Whole programs, whose task is not known; the gains are of their authors' own repairs.
TEST(Programs, TheirFlawsAreNamedWithoutATask) {
  const struct {
    const char* recording;
    const char* first;
    double won;
  } truths[] = {{"program-line_profiles", "dependent-chain", 2.21},
                {"program-linear_half", "missing-tensor-cores", 6.22},
                {"program-half_layer", "missing-tensor-cores", 5.01},
                {"program-boost_bins", "atomics-contention", 6.58},
                {"program-frame_calib", "unfused-kernels", 2.68},
                {"program-membrane_step", "scalar-half-math", 1.85},
                {"program-film_tonemap", "accidental-fp64", 2.35},
                {"program-companded_fold", "unbalanced-roles", 2.20}};
  for (const auto& truth : truths) {
    const Diagnosis diagnosis = diagnose(recorded(truth.recording));
    ASSERT_FALSE(diagnosis.findings.empty()) << truth.recording;
    const Finding& finding = diagnosis.findings[0];
    EXPECT_EQ(finding.tool, truth.first) << truth.recording;
    EXPECT_LT(finding.likely_speedup, 1.5 * truth.won) << truth.recording;
    EXPECT_LT(truth.won, 1.5 * finding.likely_speedup) << truth.recording;
    EXPECT_LE(truth.won, finding.upper_speedup) << truth.recording;
    EXPECT_NE(diagnosis.summary.find("estimated"), std::string::npos) << diagnosis.summary;
  }
}

// The second updates its tensors in place: what it reads is what it needs.
TEST(Programs, ASoundOneIsToldToStop) {
  for (const char* recording : {"program-star_cluster", "program-adam_step"}) {
    const Diagnosis diagnosis = diagnose(recorded(recording));
    ASSERT_EQ(diagnosis.findings.size(), 1u) << recording;
    EXPECT_TRUE(diagnosis.findings[0].stop) << recording;
    EXPECT_NE(diagnosis.findings[0].cause.find("estimated from counters"), std::string::npos);
  }
}

// Arithmetic in fp64 that is the program's own, and look-ups of what data tell.
TEST(Programs, WhatLooksLikeAFlawAndIsNeeded) {
  for (const char* recording : {"program-beam_tracking", "program-store_join"}) {
    for (const Finding& finding : diagnose(recorded(recording)).findings) {
      EXPECT_TRUE(finding.stop || finding.likely_speedup < 1.1)
          << recording << ": " << finding.tool << " " << finding.likely_speedup;
    }
  }
}

// The pitch that makes the banks conflict is a constant, 20 lines before the waits.
TEST(Programs, AFindingNamesTheDefinitionBehindItsLines) {
  const Diagnosis diagnosis = diagnose(recorded("program-phoneme_dtw"));
  ASSERT_FALSE(diagnosis.findings.empty());
  EXPECT_EQ(diagnosis.findings[0].tool, "bank-conflicts");
  EXPECT_NE(sites_text(diagnosis.findings[0].sites).find("`kRow` at flawed.cu:23"),
            std::string::npos)
      << sites_text(diagnosis.findings[0].sites);
}

}  // namespace
}  // namespace kernelpro
