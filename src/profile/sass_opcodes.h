// SPDX-License-Identifier: Apache-2.0
// What the opcodes of sm_70 to sm_121 do, by the part of their name before the first dot. From
// NVIDIA's "CUDA Binary Utilities" (instruction set reference) and compiled code.
#pragma once

#include <cstdint>
#include <string_view>

namespace kernelpro {

struct SassInstruction;

enum class Op : std::uint8_t {
  kUnknown,
  kTensor,     // of one warp: HMMA, IMMA, DMMA, QMMA
  kWarpgroup,  // HGMMA and its like, and tcgen05's UTC*MMA
  kFp32,       // add, multiply, multiply-add
  kHalf,
  kFp64,
  kSpecial,  // MUFU
  kConvert,  // the slow kind: I2F, F2I, F2F, FRND
  kPack,     // the quick kind: F2FP, I2FP
  kInteger,
  kSelect,  // minimum, maximum, comparison, selection of floating-point numbers
  kMove,
  kGlobalLoad,
  kGlobalStore,
  kGlobalAtomic,
  kSharedLoad,
  kMatrixLoad,  // LDSM
  kSharedStore,
  kSharedAtomic,
  kLocalLoad,
  kLocalStore,
  kConstantLoad,
  kTexture,
  kAsyncCopy,     // LDGSTS
  kBulkCopy,      // UBLKCP, UTMALDG
  kTensorMemory,  // tcgen05's LDTM, STTM and their like
  kBarrier,
  kMbarrier,  // SYNCS
  kClusterBarrier,
  kFence,
  kShuffle,
  kVote,
  kCount,  // S2R and other readers of system state
  kBranch,
  kCall,
  kExit,
  kConverge,  // BSSY, BSYNC, WARPSYNC
  kOther,     // known, of no interest
};

Op op_of(std::string_view root);

bool is_variable_latency(Op op);  // its result comes by a scoreboard

// On fp64 values: arithmetic, comparisons and conversions from or to them.
bool touches_fp64(const SassInstruction& i);
bool is_fp64_conversion(const SassInstruction& i);
// Bits that one thread moves. Whole fields only: "LTC128B" is a cache hint, no width.
int access_bits(const SassInstruction& i);
// Cycles from issue until a dependent instruction may issue, as typical for sm_80 to sm_100:
// published micro-benchmarks (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture", 2024; Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture", 2022).
// Memory: what a miss of L1 and L2 costs for global memory, a hit of L1 for local memory.
int typical_latency(const SassInstruction& i);

}  // namespace kernelpro
