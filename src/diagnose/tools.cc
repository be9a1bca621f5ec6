// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools.h"

namespace kernelpro {

namespace {

constexpr unsigned kMemoryLike = bit(Bound::kMemory) | bit(Bound::kMixed);
constexpr unsigned kComputeLike = bit(Bound::kCompute) | bit(Bound::kMixed);

constexpr const char* kRoof[] = {"timing.median", "ceiling.copy_bandwidth"};
constexpr const char* kFmaRoof[] = {"timing.median", "ceiling.fma_rate", "task.flops"};
constexpr const char* kMix[] = {"cpu.asm.hot.packed_fp", "cpu.asm.hot.scalar_fp"};
constexpr const char* kThreads[] = {"cpu.threads_busy", "machine.parallel_units", "timing.median"};
constexpr const char* kStores[] = {"cpu.asm.hot.streaming_stores", "task.compulsory_bytes",
                                   "timing.median", "ceiling.copy_bandwidth"};
constexpr const char* kSpill[] = {"ptxas.stack_bytes",      "ptxas.spill_store_bytes",
                                  "ptxas.spill_load_bytes", "sass.hot.local_loads",
                                  "sass.hot.local_stores",  "sass.hot.instructions"};
constexpr const char* kLoads[] = {"sass.hot.global_loads", "sass.hot.global_loads_32",
                                  "sass.hot.global_loads_narrow", "sass.hot.instructions"};
constexpr const char* kTensor[] = {"task.flops",          "task.matmul_flops", "task.half_inputs",
                                   "ceiling.tensor_rate", "sass.hmma",         "sass.hgmma",
                                   "timing.median"};
constexpr const char* kGrid[] = {"launch__grid_size", "launch__waves_per_multiprocessor",
                                 "machine.parallel_units", "timing.median"};
constexpr const char* kLaunches[] = {"plan.kernels", "timing.median"};

constexpr Tool kTools[] = {
    {"at-bandwidth-ceiling", "Memory traffic already runs at the measured bandwidth: stop here.",
     ToolTarget::kAny, kMemoryLike, kRoof, at_bandwidth_ceiling, false, Scope::kCall},
    {"at-compute-ceiling", "Arithmetic already runs at the measured rate of its unit: stop here.",
     ToolTarget::kAny, kComputeLike, kFmaRoof, at_compute_ceiling, false, Scope::kCall},
    {"far-from-both-ceilings", "Neither bandwidth nor arithmetic explains the time: waiting does.",
     ToolTarget::kAny, kAnyBound, kRoof, far_from_both_ceilings, true, Scope::kCall},
    {"scalar-code", "The hot loop does its floating-point work one element at a time.",
     ToolTarget::kCpu, kAnyBound, kMix, scalar_code},
    {"one-thread-busy", "Hardware threads stand idle while the call runs.", ToolTarget::kCpu,
     kAnyBound, kThreads, one_thread_busy},
    {"streaming-stores", "Ordinary stores read every output line before they overwrite it.",
     ToolTarget::kCpu, kMemoryLike, kStores, streaming_stores},
    {"register-spill", "Registers, or an array indexed at run time, live in local memory.",
     ToolTarget::kCuda, kAnyBound, kSpill, register_spill},
    {"scalar-loads", "The hot loop loads 32 bits or less at a time.", ToolTarget::kCuda, kAnyBound,
     kLoads, scalar_loads},
    {"missing-tensor-cores", "Half-precision matrix products run outside the best matrix units.",
     ToolTarget::kCuda, kAnyBound, kTensor, missing_tensor_cores},
    {"small-grid", "The grid leaves multiprocessors idle, at once or in its last wave.",
     ToolTarget::kCuda, kAnyBound, kGrid, small_grid},
    {"launch-bound", "Many short kernels: launching them takes the time.", ToolTarget::kCuda,
     bit(Bound::kLaunch), kLaunches, launch_bound, false, Scope::kCall},
};

constexpr Precedence kPrecedences[] = {
    {"register-spill", "far-from-both-ceilings", "unroll",
     "more work in flight needs more registers, and these already spill"},
    {"register-spill", "far-from-both-ceilings", "tile-size",
     "a larger tile per thread needs more registers, and these already spill"},
    {"register-spill", "scalar-loads", "unroll",
     "more loads in flight need more registers, and these already spill"},
    {"missing-tensor-cores", "scalar-loads", "",
     "the change to matrix instructions replaces these loads"},
    {"launch-bound", "far-from-both-ceilings", "", "the launches are the wait"},
    {"launch-bound", "small-grid", "", "the launches come first"},
    {"small-grid", "far-from-both-ceilings", "grid-size", "small-grid gives the same advice"},
    {"scalar-code", "far-from-both-ceilings", "vectorize", "scalar-code gives the same advice"},
    {"one-thread-busy", "far-from-both-ceilings", "threads",
     "one-thread-busy gives the same advice"},
    {"scalar-loads", "far-from-both-ceilings", "vectorize", "scalar-loads gives the same advice"},
    {"streaming-stores", "far-from-both-ceilings", "streaming",
     "streaming-stores gives the same advice"},
};

}  // namespace

std::span<const Tool> tools() { return kTools; }

std::span<const Precedence> precedences() { return kPrecedences; }

}  // namespace kernelpro
