// SPDX-License-Identifier: Apache-2.0
// What an instruction does, as far as the analyses tell apart.
#pragma once

#include <cstdint>

namespace kernelpro {

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

}  // namespace kernelpro
