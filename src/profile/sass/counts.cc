// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/counts.h"

#include "base/text.h"
#include "profile/sass/loops.h"
#include "profile/sass/opcodes.h"
#include "profile/sass/operands.h"
#include "profile/sass/patterns.h"
#include "profile/sass/work.h"

namespace kernelpro {

namespace {

using I = const SassInstruction&;

bool is_load(I i) { return i.op == Op::kGlobalLoad; }
bool is_store(I i) { return i.op == Op::kGlobalStore; }
bool is_lds(I i) { return i.op == Op::kSharedLoad; }
bool is_sts(I i) { return i.op == Op::kSharedStore; }
// Matrix stores move 8 x 8 tiles: their "16" is the element size, not a width.
bool is_plain_sts(I i) { return is_sts(i) && i.root != "STSM"; }
bool is_async(I i) { return i.op == Op::kAsyncCopy || i.op == Op::kBulkCopy; }
bool is_call(I i) { return i.root == "CALL"; }
bool is_block_barrier(I i) { return i.root == "BAR"; }

bool is_fp64_value(I i) { return touches_fp64(i) && i.root != "DMMA"; }

// Integer arithmetic, comparison and logic; "IMAD.MOV" is a copy.
bool is_integer(I i) {
  if (i.op != Op::kInteger) return false;
  return !(i.root == "IMAD" && i.has("MOV"));
}

// Carries are ".X"; both read or write the upper half of a pair.
bool is_wide_integer(I i) { return is_integer(i) && (i.has("WIDE") || i.has("X") || i.has("64")); }

bool is_returning_atomic(I i) {
  if (i.op != Op::kGlobalAtomic || i.root.starts_with("RED")) return false;
  for (const RegisterSpan& span : access_of(i).writes) {
    if (span.first < kFirstPredicate) return true;
  }
  return false;
}

bool has_evict_hint(I i) {
  if (!is_load(i) && !is_store(i)) return false;
  for (const std::string& m : i.modifiers) {
    if (m == "EF" || m == "EL" || m == "LU" || m == "EU" || m == "NA") return true;
  }
  return false;
}

bool is_conditional(I i) { return !i.guard.empty() && i.guard != "@PT"; }

bool is_lane_condition(I i) {
  return is_conditional(i) && !contains(i.guard, "U") && i.op != Op::kBranch && i.op != Op::kExit &&
         i.op != Op::kCall;
}

bool mufu(I i, std::initializer_list<std::string_view> functions) {
  if (i.op != Op::kSpecial) return false;
  for (const std::string_view function : functions) {
    if (i.has(function)) return true;
  }
  return false;
}

constexpr SassCount kKernel[] = {
    {"sass.global_loads", is_load},
    {"sass.global_stores", is_store},
    {"sass.global_atomics", [](I i) { return i.op == Op::kGlobalAtomic; }},
    {"sass.shared_atomics", [](I i) { return i.op == Op::kSharedAtomic; }},
    {"sass.shared_loads", [](I i) { return is_lds(i) || i.op == Op::kMatrixLoad; }},
    {"sass.shared_stores", is_sts},
    {"sass.local_loads", [](I i) { return i.op == Op::kLocalLoad; }},
    {"sass.local_stores", [](I i) { return i.op == Op::kLocalStore; }},
    {"sass.ldgsts", [](I i) { return i.op == Op::kAsyncCopy; }},
    {"sass.bulk_copies", [](I i) { return i.op == Op::kBulkCopy; }},
    {"sass.barriers", is_block_barrier},
    {"sass.mbarriers", [](I i) { return i.op == Op::kMbarrier; }},
    {"sass.cluster_barriers", [](I i) { return i.op == Op::kClusterBarrier; }},
    {"sass.fp64", is_fp64_value},
    {"sass.hmma", [](I i) { return i.op == Op::kTensor; }},
    {"sass.hgmma", [](I i) { return i.op == Op::kWarpgroup; }},
    {"sass.tf32_products",
     [](I i) { return (i.op == Op::kTensor || i.op == Op::kWarpgroup) && i.has("TF32"); }},
    {"sass.ldsm", [](I i) { return i.op == Op::kMatrixLoad; }},
    {"sass.register_reallocations", [](I i) { return i.root == "USETMAXREG"; }},
    {"sass.calls", is_call},
};

constexpr SassCount kHot[] = {
    {"sass.hot.global_loads", is_load},
    {"sass.hot.global_loads_128", [](I i) { return is_load(i) && access_bits(i) >= 128; }},
    {"sass.hot.global_loads_64", [](I i) { return is_load(i) && access_bits(i) == 64; }},
    {"sass.hot.global_loads_32", [](I i) { return is_load(i) && access_bits(i) == 32; }},
    {"sass.hot.global_loads_narrow", [](I i) { return is_load(i) && access_bits(i) < 32; }},
    {"sass.hot.global_stores", is_store},
    {"sass.hot.global_stores_128", [](I i) { return is_store(i) && access_bits(i) >= 128; }},
    {"sass.hot.global_stores_64", [](I i) { return is_store(i) && access_bits(i) == 64; }},
    {"sass.hot.global_stores_32", [](I i) { return is_store(i) && access_bits(i) == 32; }},
    {"sass.hot.global_stores_narrow", [](I i) { return is_store(i) && access_bits(i) < 32; }},
    {"sass.hot.global_evict_hints", has_evict_hint},
    {"sass.hot.shared_loads", [](I i) { return is_lds(i) || i.op == Op::kMatrixLoad; }},
    {"sass.hot.shared_loads_128", [](I i) { return is_lds(i) && access_bits(i) == 128; }},
    {"sass.hot.shared_loads_64", [](I i) { return is_lds(i) && access_bits(i) == 64; }},
    {"sass.hot.shared_loads_32", [](I i) { return is_lds(i) && access_bits(i) == 32; }},
    {"sass.hot.shared_loads_narrow", [](I i) { return is_lds(i) && access_bits(i) < 32; }},
    {"sass.hot.ldsm", [](I i) { return i.op == Op::kMatrixLoad; }},
    {"sass.hot.shared_stores", is_sts},
    {"sass.hot.shared_stores_128", [](I i) { return is_plain_sts(i) && access_bits(i) == 128; }},
    {"sass.hot.shared_stores_narrow", [](I i) { return is_plain_sts(i) && access_bits(i) < 32; }},
    {"sass.hot.async_copies", is_async},
    {"sass.hot.ldgsts", [](I i) { return i.op == Op::kAsyncCopy; }},
    {"sass.hot.ldgsts_narrow", [](I i) { return i.op == Op::kAsyncCopy && access_bits(i) < 128; }},
    {"sass.hot.bulk_copies", [](I i) { return i.op == Op::kBulkCopy; }},
    {"sass.hot.local_loads", [](I i) { return i.op == Op::kLocalLoad; }},
    {"sass.hot.local_stores", [](I i) { return i.op == Op::kLocalStore; }},
    {"sass.hot.constant_loads", [](I i) { return i.op == Op::kConstantLoad; }},
    {"sass.hot.ffma", [](I i) { return i.op == Op::kFp32; }},
    {"sass.hot.fp32_fused", [](I i) { return i.op == Op::kFp32 && contains(i.root, "FFMA"); }},
    {"sass.hot.half_math", is_half_math},
    {"sass.hot.half_scalar", is_scalar_half},
    {"sass.hot.half_conversions_scalar", is_scalar_half_conversion},
    {"sass.hot.fp8_unpacked", [](I i) { return i.root == "F2FP" && i.has("UNPACK_B"); }},
    {"sass.hot.fp64", is_fp64_value},
    {"sass.hot.fp64_conversions", is_fp64_conversion},
    {"sass.hot.dmma", [](I i) { return i.root == "DMMA"; }},
    {"sass.hot.hmma", [](I i) { return i.op == Op::kTensor; }},
    {"sass.hot.hgmma", [](I i) { return i.op == Op::kWarpgroup; }},
    {"sass.hot.mufu", [](I i) { return i.op == Op::kSpecial; }},
    {"sass.hot.mufu_reciprocal",
     [](I i) {
       return mufu(i, {"RCP", "RCP64H"});
     }},
    {"sass.hot.mufu_root",
     [](I i) {
       return mufu(i, {"RSQ", "SQRT", "RSQ64H"});
     }},
    {"sass.hot.mufu_exponential",
     [](I i) {
       return mufu(i, {"EX2", "LG2", "TANH"});
     }},
    {"sass.hot.mufu_trigonometric",
     [](I i) {
       return mufu(i, {"SIN", "COS"});
     }},
    {"sass.hot.conversions", [](I i) { return i.op == Op::kConvert; }},
    {"sass.hot.precise_divisions", [](I i) { return i.root == "FCHK"; }},
    {"sass.hot.division_calls", calls_integer_division},
    {"sass.hot.calls", is_call},
    {"sass.hot.integer", is_integer},
    {"sass.hot.integer_wide", is_wide_integer},
    {"sass.hot.moves", is_move},
    {"sass.hot.selects", is_select},
    {"sass.hot.barriers", is_block_barrier},
    {"sass.hot.mbarriers", [](I i) { return i.op == Op::kMbarrier; }},
    {"sass.hot.cluster_barriers", [](I i) { return i.op == Op::kClusterBarrier; }},
    {"sass.hot.fences", [](I i) { return i.root == "MEMBAR" || i.root == "FENCE"; }},
    {"sass.hot.wide_fences",
     [](I i) { return i.root == "MEMBAR" && (i.has("GPU") || i.has("SYS") || i.has("VC")); }},
    {"sass.hot.shuffles", [](I i) { return i.op == Op::kShuffle; }},
    {"sass.hot.votes", [](I i) { return i.op == Op::kVote; }},
    {"sass.hot.global_atomics", [](I i) { return i.op == Op::kGlobalAtomic; }},
    {"sass.hot.global_atomics_returning", is_returning_atomic},
    {"sass.hot.shared_atomics", [](I i) { return i.op == Op::kSharedAtomic; }},
    {"sass.hot.cas",
     [](I i) {
       return (i.op == Op::kGlobalAtomic || i.op == Op::kSharedAtomic) &&
              (i.has("CAS") || i.has("CAST"));
     }},
    {"sass.hot.divergent_regions", [](I i) { return i.root == "BSSY"; }},
    {"sass.hot.predicated", is_lane_condition},
};

}  // namespace

std::span<const SassCount> kernel_counts() { return kKernel; }
std::span<const SassCount> hot_counts() { return kHot; }

}  // namespace kernelpro
