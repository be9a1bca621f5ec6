// SPDX-License-Identifier: Apache-2.0
// Metrics from the binary and the launch plan, before anything runs (CUDA target).
#include "core/evidence/metrics_tables.h"

namespace kernelpro {

namespace {
constexpr MetricRow kCallPlanRows[] = {
    {"plan.kernels", "1", "kernel launches in one call"},
    {"plan.memcpys", "1", "copies in one call"},
    {"plan.memcpy_bytes", "byte", "their bytes"},
    {"plan.memsets", "1", "memsets in one call"},
    {"plan.memset_bytes", "byte", "their bytes"},
    {"plan.levels", "1", "nodes on the longest path of the call's graph"},
    {"plan.data_levels", "1", "nodes on the longest path when only what they exchange counts"},
    {"plan.median_blocks", "1", "median grid of the call's kernels"},
    {"plan.handovers", "1", "kernels that read what an earlier one wrote, in pairs"},
    {"plan.handover_bytes", "byte", "bytes that kernels write and read only for one another"},
    {"plan.handover_largest", "byte", "of them, the largest buffer"},
    {"plan.handover_in_l2", "byte", "of them, those in buffers so small that L2 keeps each"},
    {"plan.handover_summed", "byte", "of them, those whose readers also need a summary of them"},
    {"plan.consumers", "1", "kernels that read what an earlier one wrote"},
};

constexpr MetricRow kKernelPlanRows[] = {
    {"kernel.launches", "1", "launches of this kernel in one call"},
    {"kernel.concurrent", "1", "1 when other kernels of the call may run at the same time"},
    {"kernel.handed_bytes", "byte", "its part of plan.handover_bytes, as a reader"},
};

// The graph says which kernels there are; their times come from a profiler.
constexpr MetricRow kShareRows[] = {
    {"kernel.share", "1", "the kernel's part of the kernels' summed time, 0 to 1"},
};

constexpr MetricRow kLaunchRows[] = {
    {"launch__grid_size", "1", "blocks of the largest launch"},
    {"launch__block_size", "1", "threads per block of the largest launch"},
    {"launch__shared_mem_per_block_dynamic", "byte", "dynamic shared memory of the largest launch"},
    {"launch__cluster_size", "1", "blocks in a cluster; 1 without clusters"},
};

constexpr MetricRow kResourceRows[] = {
    {"launch__registers_per_thread", "1", "registers of the largest kernel"},
    {"launch__shared_mem_per_block_static", "byte", "static shared memory"},
    {"launch__occupancy_limit_registers", "1", "resident blocks that registers allow"},
    {"launch__occupancy_limit_shared_mem", "1", "resident blocks that shared memory allows"},
    {"launch__occupancy_limit_warps", "1", "resident blocks that warps allow"},
    {"launch__occupancy_limit_blocks", "1", "resident blocks that the hardware allows"},
    {"launch__occupancy_limit_barriers", "1", "resident blocks that named barriers allow"},
    {"sm__maximum_warps_per_active_cycle_pct", "%", "theoretical occupancy"},
    {"occupancy.registers_for_more", "1",
     "registers per thread with which one more block would fit; 0: none would"},
    {"occupancy.shared_bytes_for_more", "byte",
     "shared memory per block with which one more block would fit; 0: none would"},
    {"launch__waves_per_multiprocessor", "1", "blocks over what all SMs hold at once"},
    {"ptxas.stack_bytes", "byte", "stack frame per thread"},
    {"ptxas.spill_store_bytes", "byte", "register spill stores per thread"},
    {"ptxas.spill_load_bytes", "byte", "register spill loads per thread"},
    {"ptxas.shared_bytes", "byte", "static shared memory per block"},
};

// Machine code. sass.*: counts over the whole kernel. sass.hot.*: counts over one pass through
// each of its hot loops (over the whole kernel if it has no loop), without loops that only
// wait, remainders of unrolled loops and slow paths. sass.loop.*: the hottest loop only. If the
// code has line information, the text "line of NAME" gives the lines that contribute most to
// metric NAME: "kernel.cu:41, kernel.cu:44".
constexpr MetricRow kSassRows[] = {
    {"sass.instructions", "1", "instructions in the kernel, helpers included, without padding"},
    {"sass.code_bytes", "byte", "size of the kernel's code, without padding"},
    {"sass.unknown_share", "1", "part of the kernel's instructions whose opcode is not known"},
    {"sass.control_codes", "1", "1 when stall counts and scoreboards could be read"},
    {"sass.loops", "1", "loops in the kernel that do not only wait"},
    {"sass.wait_loops", "1", "loops that only wait: on a barrier, a lock or a flag"},
    {"sass.cas_loops", "1",
     "loops that update memory by compare-and-swap, trying until it succeeds"},
    {"sass.global_loads", "1", "global loads in the kernel"},
    {"sass.global_stores", "1", "global stores in the kernel"},
    {"sass.global_atomics", "1", "atomics on global memory (ATOM, ATOMG, RED) in the kernel"},
    {"sass.shared_atomics", "1", "atomics on shared memory (ATOMS) in the kernel"},
    {"sass.shared_loads", "1", "shared-memory loads in the kernel"},
    {"sass.shared_stores", "1", "shared-memory stores in the kernel"},
    {"sass.local_loads", "1", "local-memory loads in the kernel"},
    {"sass.local_stores", "1", "local-memory stores in the kernel"},
    {"sass.local_depth", "1", "loops around the innermost local-memory access; 0 = in none"},
    {"sass.ldgsts", "1", "asynchronous copies by the threads (LDGSTS) in the kernel"},
    {"sass.bulk_copies", "1", "bulk copies (UTMALDG, UBLKCP and their like) in the kernel"},
    {"sass.barriers", "1", "block barriers (BAR) in the kernel"},
    {"sass.mbarriers", "1", "operations on barriers in shared memory (SYNCS) in the kernel"},
    {"sass.cluster_barriers", "1", "cluster barriers in the kernel"},
    {"sass.fp64", "1", "fp64 arithmetic and conversions from and to it in the kernel"},
    {"sass.hmma", "1", "HMMA, IMMA, DMMA instructions in the kernel"},
    {"sass.hgmma", "1",
     "matrix instructions of a warpgroup (HGMMA, QGMMA, IGMMA) or of tcgen05 (UTCHMMA and its "
     "like) in the kernel"},
    {"sass.ldsm", "1", "matrix loads from shared memory (LDSM) in the kernel"},
    {"sass.register_reallocations", "1", "setmaxnreg (USETMAXREG) in the kernel"},
    {"sass.calls", "1", "calls in the kernel, helpers of division and roots among them"},

    {"sass.hot.loops", "1", "hot loops; 0: no loop, the whole kernel was counted"},
    {"sass.hot.depth", "1", "loops around the innermost hot loop, itself included"},
    {"sass.hot.instructions", "1", "instructions in the hot loops"},
    {"sass.hot.code_bytes", "byte", "size of the hot loops' code"},

    {"sass.hot.global_loads", "1", "global loads (LDG) in the hot loops"},
    {"sass.hot.global_loads_128", "1", "of them 128-bit and wider"},
    {"sass.hot.global_loads_64", "1", "of them 64-bit"},
    {"sass.hot.global_loads_32", "1", "of them 32-bit"},
    {"sass.hot.global_loads_narrow", "1", "of them 8- or 16-bit"},
    {"sass.hot.global_loads_mergeable", "1",
     "of them narrower than 128 bit with a neighbour at the next address"},
    {"sass.hot.global_loads_merged", "1", "loads that those would be when merged"},
    {"sass.hot.global_loads_invariant", "1", "of them from an address that no iteration changes"},
    {"sass.hot.global_loads_in_flight", "1",
     "global loads of one thread that are under way before the first of them is waited for, at "
     "most"},
    {"sass.hot.global_bytes_in_flight", "byte", "bytes of those loads, per thread"},
    {"sass.hot.global_stores", "1", "global stores (STG) in the hot loops"},
    {"sass.hot.global_stores_128", "1", "of them 128-bit and wider"},
    {"sass.hot.global_stores_64", "1", "of them 64-bit"},
    {"sass.hot.global_stores_32", "1", "of them 32-bit"},
    {"sass.hot.global_stores_narrow", "1", "of them 8- or 16-bit"},
    {"sass.hot.global_stores_mergeable", "1",
     "of them narrower than 128 bit with a neighbour at the next address"},
    {"sass.hot.global_stores_merged", "1", "stores that those would be when merged"},
    {"sass.hot.global_updates", "1", "global stores to where the same iteration loads: in place"},
    {"sass.hot.global_evict_hints", "1",
     "global loads and stores that say how long the caches should keep their data"},
    {"sass.hot.global_unit_stride", "1",
     "global loads and stores whose lanes are known to lie side by side (threadIdx.x as the lane)"},
    {"sass.hot.global_uniform", "1", "of all those with one known address for all lanes"},
    {"sass.hot.global_strided", "1", "of all those known to touch more sectors than they need"},
    {"sass.hot.global_sectors", "1",
     "32-byte sectors that a warp touches in the global loads and stores whose lanes are known"},
    {"sass.hot.global_sectors_fewest", "1", "the fewest that those could touch"},
    {"sass.hot.global_strided_filled", "1",
     "of those the ones whose gaps other accesses of the same iteration fill"},
    {"sass.hot.global_lane_stride", "byte", "largest known distance between lanes"},
    {"sass.hot.staged_copies", "1",
     "global loads whose value goes unchanged through registers into shared memory"},

    {"sass.hot.shared_loads", "1", "shared-memory loads (LDS, LDSM) in the hot loops"},
    {"sass.hot.shared_loads_128", "1", "of them LDS of 128 bit"},
    {"sass.hot.shared_loads_64", "1", "of them LDS of 64 bit"},
    {"sass.hot.shared_loads_32", "1", "of them LDS of 32 bit"},
    {"sass.hot.shared_loads_narrow", "1", "of them LDS of 8 or 16 bit"},
    {"sass.hot.shared_loads_mergeable", "1",
     "of them narrower than 128 bit with a neighbour at the next address"},
    {"sass.hot.shared_loads_merged", "1", "loads that those would be when merged"},
    {"sass.hot.shared_loads_invariant", "1", "of them from an address that no iteration changes"},
    {"sass.hot.ldsm", "1", "of them matrix loads (LDSM)"},
    {"sass.hot.shared_stores", "1", "shared-memory stores (STS, STSM) in the hot loops"},
    {"sass.hot.shared_stores_128", "1", "of them 128-bit"},
    {"sass.hot.shared_stores_narrow", "1", "of them 8- or 16-bit"},
    {"sass.hot.shared_conflicting", "1",
     "shared loads and stores whose lanes are known to meet on a bank (threadIdx.x as the lane)"},
    {"sass.hot.shared_ways", "1", "lanes on one bank, at most, as far as known; 1 = no conflict"},

    {"sass.hot.async_copies", "1",
     "asynchronous copies (LDGSTS, UBLKCP, UTMALDG) in the hot loops"},
    {"sass.hot.ldgsts", "1", "of them by the threads (LDGSTS)"},
    {"sass.hot.ldgsts_narrow", "1", "of those narrower than 128 bit"},
    {"sass.hot.async_groups", "1",
     "groups of asynchronous copies (LDGSTS) that may stay under way when the loop waits for one"},
    {"sass.hot.bulk_copies", "1", "of them bulk copies (UTMALDG, UBLKCP and their like)"},
    {"sass.hot.local_loads", "1", "local-memory loads (LDL) in the hot loops"},
    {"sass.hot.local_stores", "1", "local-memory stores (STL) in the hot loops"},
    {"sass.hot.constant_loads", "1", "loads from constant memory (LDC) in the hot loops"},
    {"sass.hot.constant_loads_indexed", "1",
     "of them with an index that the lanes may not have in common"},

    {"sass.hot.ffma", "1", "fp32 multiply-adds, adds and multiplies in the hot loops"},
    {"sass.hot.fp32_fused", "1", "of them multiply-adds (FFMA)"},
    {"sass.hot.fp32_fusable", "1",
     "an fp32 multiply and the add that uses its result, or a sum of products that "
     "it begins, in the hot loops"},
    {"sass.hot.half_math", "1", "HFMA2, HADD2, HMUL2 in the hot loops, conversions left out"},
    {"sass.hot.half_scalar", "1", "of them on one element instead of two"},
    {"sass.hot.half_conversions", "1", "fp16 or bf16 values made fp32, or back, in the hot loops"},
    {"sass.hot.half_conversions_scalar", "1", "of those to half precision, one value at a time"},
    {"sass.hot.fp8_unpacked", "1", "fp8 values unpacked for another format in the hot loops"},
    {"sass.hot.fp64", "1", "fp64 arithmetic and conversions from and to it in the hot loops"},
    {"sass.hot.fp64_conversions", "1", "of them conversions"},
    {"sass.hot.dmma", "1", "DMMA instructions, the fp64 matrix units', in the hot loops"},
    {"sass.hot.hmma", "1", "HMMA, IMMA, DMMA instructions in the hot loops"},
    {"sass.hot.hgmma", "1", "matrix instructions of warpgroups or of tcgen05 in the hot loops"},
    {"sass.hot.mufu", "1", "special-function operations (MUFU) in the hot loops"},
    {"sass.hot.mufu_reciprocal", "1", "of them reciprocals"},
    {"sass.hot.mufu_root", "1", "of them square roots and their reciprocals"},
    {"sass.hot.mufu_exponential", "1", "of them exponentials and logarithms"},
    {"sass.hot.mufu_trigonometric", "1", "of them sines and cosines"},
    {"sass.hot.conversions", "1",
     "conversions and roundings of the slow kind (I2F, F2I, F2F, FRND) in the hot loops"},
    {"sass.hot.precise_divisions", "1", "IEEE fp32 divisions (FCHK) in the hot loops"},
    {"sass.hot.integer_divisions", "1",
     "integer divisions and remainders by a run-time value in the hot loops, inline and calls"},
    {"sass.hot.division_calls", "1",
     "calls of 64-bit integer division or remainder in the hot loops"},
    {"sass.hot.slow_path_calls", "1", "calls that only rare operands need, in the hot loops"},
    {"sass.hot.trigonometric_slow_paths", "1",
     "argument reductions of sinf and cosf for large angles in the hot loops"},
    {"sass.hot.calls", "1", "all calls in the hot loops"},

    {"sass.hot.integer", "1", "integer and address arithmetic in the hot loops"},
    {"sass.hot.address", "1", "of it what serves only addresses and loop control"},
    {"sass.hot.integer_wide", "1", "of it 64-bit: IMAD.WIDE and carries"},
    {"sass.hot.moves", "1", "copies between registers in the hot loops"},
    {"sass.hot.selects", "1", "minima, maxima, comparisons and selections in the hot loops"},

    {"sass.hot.barriers", "1", "block barriers (BAR) in the hot loops"},
    {"sass.hot.between_barriers", "1",
     "instructions between two block barriers of the hot loops, the fewest"},
    {"sass.hot.mbarriers", "1", "operations on barriers in shared memory in the hot loops"},
    {"sass.hot.cluster_barriers", "1", "cluster barriers in the hot loops"},
    {"sass.hot.fences", "1", "memory fences in the hot loops"},
    {"sass.hot.wide_fences", "1", "of them, those that wait for the whole GPU or system"},
    {"sass.hot.shuffles", "1", "warp shuffles in the hot loops"},
    {"sass.hot.votes", "1", "warp votes, matches and reductions in the hot loops"},
    {"sass.hot.global_atomics", "1", "atomics on global memory in the hot loops"},
    {"sass.hot.global_atomics_returning", "1", "of them with a result that is used"},
    {"sass.hot.shared_atomics", "1", "atomics on shared memory in the hot loops"},
    {"sass.hot.cas", "1", "compare-and-swap operations in the hot loops"},
    {"sass.hot.branches", "1", "conditional branches in the hot loops, the closing ones left out"},
    {"sass.hot.divergent_regions", "1",
     "places in the hot loops where the lanes of a warp may part (BSSY)"},
    {"sass.hot.predicated", "1", "instructions of the hot loops under a condition of each lane"},

    {"sass.hot.waits_global", "1", "places in the hot loops that wait for a global load"},
    {"sass.hot.waits_local", "1", "places that wait for a local-memory load"},
    {"sass.hot.waits_shared", "1", "places that wait for a shared-memory load"},
    {"sass.hot.waits_special", "1",
     "places that wait for a special function, conversion or fp64 unit"},
    {"sass.hot.waits_shuffle", "1", "places that wait for a shuffle or vote"},
    {"sass.hot.waits_atomic", "1", "places that wait for an atomic's result"},
    {"sass.hot.waits_constant", "1", "places that wait for a constant load"},
    {"sass.hot.waits_other", "1", "places that wait for another variable-latency instruction"},

    {"sass.loop.instructions", "1", "instructions of the hottest loop, inner loops left out"},
    {"sass.loop.issue_cycles", "cycle",
     "the least cycles in which one warp can issue one iteration of the hottest loop, by the "
     "compiler's stall counts"},
    {"sass.loop.alone_cycles", "cycle",
     "one iteration of the hottest loop for a warp that has its scheduler to itself, with typical "
     "latencies: as many warps per scheduler as this is over the instructions hide all waits"},
    {"sass.loop.chain_cycles", "cycle",
     "longest chain of dependent instructions within one iteration of the hottest loop, with "
     "typical latencies"},
    {"sass.loop.chain_length", "1", "instructions of that chain"},
    {"sass.loop.carried_cycles", "cycle",
     "longest chain from one iteration to the next: what an iteration takes at least; 0 = none"},
    {"sass.loop.carried_length", "1", "instructions of that chain"},
    {"sass.loop.load_use_cycles", "cycle",
     "cycles of own work between a global load of the hottest loop and its first use, the median"},
    {"plan.matrix_elsewhere", "1", "other kernels of the call with matrix instructions"},
};

constexpr MetricTable kTables[] = {
    {Family::kPlan, Level::kStatic, Scope::kCall, kCallPlanRows},
    {Family::kPlan, Level::kStatic, Scope::kKernel, kKernelPlanRows},
    {Family::kPlan, Level::kTiming, Scope::kKernel, kShareRows},
    {Family::kLaunch, Level::kStatic, Scope::kKernel, kLaunchRows},
    {Family::kResources, Level::kStatic, Scope::kKernel, kResourceRows},
    {Family::kSass, Level::kStatic, Scope::kKernel, kSassRows},
};
}  // namespace

std::span<const MetricTable> static_tables() { return kTables; }

}  // namespace kernelpro
