// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/work.h"

#include "base/text.h"
#include "profile/sass/opcodes.h"

namespace kernelpro {

bool is_move(const SassInstruction& i) {
  if (i.root == "IMAD" && i.has("MOV")) return true;
  if (i.op == Op::kHalf) return contains(i.operands, "-RZ, RZ");
  if (i.root == "CS2R") return contains(i.operands, "SRZ");
  return i.op == Op::kMove;
}

bool is_select(const SassInstruction& i) {
  return i.op == Op::kSelect || contains(i.root, "ISETP") || contains(i.root, "MNMX") ||
         i.root == "SEL" || i.root == "USEL";
}

WorkKind kind_of_work(const SassInstruction& i) {
  if (is_move(i)) return WorkKind::kMove;
  if (is_select(i)) return WorkKind::kSelect;
  switch (i.op) {
    case Op::kTensor:
    case Op::kWarpgroup:
      return WorkKind::kMatrix;
    case Op::kFp32:
      return WorkKind::kFp32;
    case Op::kHalf:
      return WorkKind::kHalf;
    case Op::kFp64:
      return is_fp64_conversion(i) ? WorkKind::kConversion : WorkKind::kFp64;
    case Op::kSpecial:
      return WorkKind::kSpecial;
    case Op::kConvert:
      return WorkKind::kConversion;
    case Op::kPack:
      return WorkKind::kHalfConversion;
    case Op::kInteger:
      return WorkKind::kInteger;
    case Op::kGlobalLoad:
    case Op::kGlobalStore:
    case Op::kGlobalAtomic:
    case Op::kTexture:
      return WorkKind::kGlobal;
    case Op::kSharedLoad:
    case Op::kMatrixLoad:
    case Op::kSharedStore:
    case Op::kSharedAtomic:
    case Op::kTensorMemory:
      return WorkKind::kShared;
    case Op::kLocalLoad:
    case Op::kLocalStore:
      return WorkKind::kLocal;
    case Op::kAsyncCopy:
    case Op::kBulkCopy:
      return WorkKind::kCopy;
    case Op::kShuffle:
    case Op::kVote:
      return WorkKind::kShuffle;
    case Op::kBarrier:
    case Op::kMbarrier:
    case Op::kClusterBarrier:
    case Op::kFence:
      return WorkKind::kSync;
    case Op::kBranch:
    case Op::kCall:
    case Op::kExit:
    case Op::kConverge:
      return WorkKind::kBranch;
    default:
      return WorkKind::kOther;
  }
}

}  // namespace kernelpro
