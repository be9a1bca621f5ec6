// SPDX-License-Identifier: Apache-2.0
// Instruction classes that the analyses distinguish.
#pragma once

#include <cstdint>

namespace kernelpro {

enum class Op : std::uint8_t {
  kUnknown,
  kTensor,     // warp-level: HMMA, IMMA, DMMA, QMMA
  kWarpgroup,  // HGMMA and similar, and tcgen05's UTC*MMA
  kFp32,       // add, multiply, multiply-add
  kHalf,
  kFp64,
  kSpecial,  // MUFU
  kConvert,  // slow conversions: I2F, F2I, F2F, FRND
  kPack,     // fast conversions: F2FP, I2FP
  kInteger,
  kSelect,  // floating-point minimum, maximum, comparison, selection
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
  kTensorMemory,  // tcgen05's LDTM, STTM and similar
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
  kOther,     // known but irrelevant
};

}  // namespace kernelpro
