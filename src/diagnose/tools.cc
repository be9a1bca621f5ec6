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
constexpr const char* kLoads[] = {"sass.hot.global_loads", "sass.hot.global_loads_32",
                                  "sass.hot.global_loads_narrow", "sass.hot.instructions"};
constexpr const char* kTensor[] = {"task.flops",          "task.matmul_flops", "task.half_inputs",
                                   "ceiling.tensor_rate", "sass.hmma",         "sass.hgmma",
                                   "timing.median"};
constexpr const char* kGrid[] = {"launch__grid_size", "launch__waves_per_multiprocessor",
                                 "machine.parallel_units", "timing.median"};
// About the system.
constexpr const char* kBranches[] = {"plan.levels", "plan.data_levels", "plan.kernels",
                                     "plan.median_blocks", "machine.parallel_units"};
constexpr const char* kHostCopies[] = {"trace.span", "trace.copies_host", "trace.copies_host_us"};
constexpr const char* kHostSyncs[] = {"trace.span", "trace.gaps_sync", "trace.syncs"};
constexpr const char* kAllocations[] = {"trace.span", "trace.allocations", "trace.periods"};

// About memory. Counters, or else the machine code.
constexpr const char* kAccesses[] = {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                     "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                     "sass.hot.global_strided"};
constexpr const char* kBanks[] = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                                  "sass.hot.shared_conflicting"};
constexpr const char* kGlobalLoads[] = {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                        "sass.hot.global_loads"};
constexpr const char* kAtomics[] = {"l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
                                    "sass.hot.global_atomics"};
constexpr const char* kLocal[] = {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                  "sass.hot.local_loads"};
constexpr const char* kDramAndTask[] = {"dram__bytes_read.sum", "dram__bytes_write.sum",
                                        "task.compulsory_bytes"};
constexpr const char* kWritesAndTask[] = {"dram__bytes_read.sum",
                                          "dram__bytes_write.sum",
                                          "task.compulsory_bytes",
                                          "task.output_bytes",
                                          "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                          "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"};
constexpr const char* kL2AndTask[] = {"dram__bytes_read.sum", "task.compulsory_bytes",
                                      "lts__t_sectors_srcunit_tex.sum"};
constexpr const char* kRegisters[] = {"launch__registers_per_thread", "launch__block_size"};
constexpr const char* kSharedLoads[] = {"sass.hot.shared_loads"};
constexpr const char* kStaging[] = {"sass.hot.staged_copies", "sass.hot.global_loads",
                                    "sass.hot.async_copies"};
constexpr const char* kCopies[] = {"sass.hot.ldgsts", "sass.hot.address", "sass.hot.instructions"};
constexpr const char* kInFlight[] = {"sass.hot.global_bytes_in_flight", "ceiling.copy_bandwidth",
                                     "machine.parallel_units"};

// About arithmetic, latency and the launch.
constexpr const char* kForOccupancyLimiter[] = {"sm__maximum_warps_per_active_cycle_pct"};
constexpr const char* kForLoadImbalance[] = {"sm__cycles_active.avg", "sm__cycles_active.max",
                                             "gpu__time_duration.sum"};
constexpr const char* kForDominantStall[] = {"smsp__average_warp_latency_per_inst_issued.ratio"};
constexpr const char* kForExcessiveBarriers[] = {"sass.hot.barriers"};
constexpr const char* kForDependentChain[] = {"sass.loop.carried_cycles", "sass.loop.issue_cycles"};
constexpr const char* kForDivergence[] = {"smsp__inst_executed.sum",
                                          "smsp__thread_inst_executed.sum"};
constexpr const char* kForScalarHalfMath[] = {"sass.hot.half_scalar", "sass.hot.instructions"};
constexpr const char* kForExpensiveMath[] = {"sass.hot.mufu", "sass.hot.instructions"};
constexpr const char* kForAccidentalFp64[] = {"sass.hot.fp64", "sass.hot.instructions"};
constexpr const char* kForIntegerDivision[] = {"sass.hot.integer_divisions",
                                               "sass.hot.instructions"};
constexpr const char* kForAddressOverhead[] = {"sass.hot.address", "sass.hot.instructions"};
constexpr const char* kForUnfusedMultiplyAdd[] = {"sass.hot.fp32_fusable", "sass.hot.instructions"};
constexpr const char* kForInstructionCache[] = {"sass.hot.code_bytes"};
constexpr const char* kForWideFences[] = {"sass.hot.instructions"};
constexpr const char* kForConstantCache[] = {"sass.hot.constant_loads_indexed",
                                             "sass.hot.instructions"};
constexpr const char* kForBlockShape[] = {"launch__block_size"};
constexpr const char* kForShallowPipeline[] = {"sass.hmma", "sass.hgmma"};

constexpr const char* kKernelsOrTrace[] = {"plan.kernels", "trace.span"};
constexpr const char* kHandoversOrTrace[] = {"plan.handover_bytes", "trace.span"};
constexpr const char* kCopiesOrTrace[] = {"plan.memcpys", "trace.span"};

// Evaluable on more than one kind of evidence: the analysis asks for what it wants.
constexpr std::span<const char* const> kNone;

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
     ToolTarget::kCuda, kAnyBound, kNone, register_spill, false, Scope::kKernel, kLocal},
    {"scalar-loads", "The hot loop loads 32 bits or less at a time.", ToolTarget::kCuda, kAnyBound,
     kLoads, scalar_loads},
    {"missing-tensor-cores", "Half-precision matrix products run outside the best matrix units.",
     ToolTarget::kCuda, kAnyBound, kTensor, missing_tensor_cores},
    {"small-grid", "The grid leaves multiprocessors idle, at once or in its last wave.",
     ToolTarget::kCuda, kAnyBound, kGrid, small_grid},
    // About the system.
    {"launch-bound", "Many short kernels: launching them takes the time.", ToolTarget::kCuda,
     kAnyBound, kNone, launch_bound, false, Scope::kCall, kKernelsOrTrace},
    {"unfused-kernels", "Kernels pass results through memory that one kernel would keep on chip.",
     ToolTarget::kCuda, kAnyBound, kNone, unfused_kernels, false, Scope::kCall, kHandoversOrTrace},
    {"serial-graph", "Independent kernels, too small for the GPU, run one after another.",
     ToolTarget::kCuda, kAnyBound, kBranches, serial_graph, false, Scope::kCall},
    {"device-copies", "Copies within the device and memsets are in the call's path.",
     ToolTarget::kCuda, kAnyBound, kNone, device_copies, false, Scope::kCall, kCopiesOrTrace},
    {"host-copies", "Copies between host and device are in the call's path.", ToolTarget::kCuda,
     kAnyBound, kHostCopies, host_copies, false, Scope::kCall},
    {"host-syncs", "The GPU is idle because the host waits for it before it goes on.",
     ToolTarget::kCuda, kAnyBound, kHostSyncs, host_syncs, false, Scope::kCall},
    {"allocations-in-path", "Memory is allocated and freed in every call.", ToolTarget::kCuda,
     kAnyBound, kAllocations, allocations_in_path, false, Scope::kCall},
    // About memory.
    {"uncoalesced-access", "Lanes of a warp touch more sectors of memory than their data need.",
     ToolTarget::kCuda, kAnyBound, kNone, uncoalesced_access, false, Scope::kKernel, kAccesses},
    {"re-read-excess", "The inputs are read from memory more than once.", ToolTarget::kCuda,
     kAnyBound, kDramAndTask, re_read_excess},
    {"excess-writes", "Results are stored more than once, or in pieces of sectors.",
     ToolTarget::kCuda, kAnyBound, kWritesAndTask, excess_writes},
    {"l2-locality", "Blocks that share data run too far apart for the L2 cache.", ToolTarget::kCuda,
     kAnyBound, kL2AndTask, l2_locality},
    {"bank-conflicts", "Lanes meet on the same banks of shared memory and take turns.",
     ToolTarget::kCuda, kAnyBound, kNone, bank_conflicts, false, Scope::kKernel, kBanks},
    {"missing-shared-memory-tiling", "Threads share operands, but each fetches its own.",
     ToolTarget::kCuda, kAnyBound, kNone, missing_shared_memory_tiling, false, Scope::kKernel,
     kGlobalLoads},
    {"missing-register-tiling", "Shared memory feeds the arithmetic one operand at a time.",
     ToolTarget::kCuda, kAnyBound, kSharedLoads, missing_register_tiling},
    {"register-pressure", "So many registers per thread that too few warps are resident.",
     ToolTarget::kCuda, kAnyBound, kRegisters, register_pressure},
    {"atomics-contention", "Atomics on few addresses, or in compare-and-swap loops, take turns.",
     ToolTarget::kCuda, kAnyBound, kNone, atomics_contention, false, Scope::kKernel, kAtomics},
    {"synchronous-staging", "The block waits for tiles that could be copied ahead.",
     ToolTarget::kCuda, kAnyBound, kStaging, synchronous_staging},
    {"missing-tma", "Threads copy element by element what bulk copies would move.",
     ToolTarget::kCuda, kAnyBound, kCopies, missing_tma},
    {"low-memory-parallelism", "Too few bytes are under way to fill the memory's bandwidth.",
     ToolTarget::kCuda, kAnyBound, kInFlight, low_memory_parallelism},
    // About arithmetic, latency and the launch.
    {"occupancy-limiter", "Few warps are resident, and too few of them are ready.",
     ToolTarget::kCuda, kAnyBound, kForOccupancyLimiter, occupancy_limiter},
    {"load-imbalance", "Some multiprocessors work much longer than others.", ToolTarget::kCuda,
     kAnyBound, kForLoadImbalance, load_imbalance},
    {"dominant-stall", "One reason takes most of the waiting.", ToolTarget::kCuda, kAnyBound,
     kForDominantStall, dominant_stall, true},
    {"excessive-barriers", "Warps wait for one another at block barriers.", ToolTarget::kCuda,
     kAnyBound, kForExcessiveBarriers, excessive_barriers},
    {"dependent-chain", "Each iteration waits for the one before.", ToolTarget::kCuda, kAnyBound,
     kForDependentChain, dependent_chain},
    {"divergence", "Lanes of a warp do not all work.", ToolTarget::kCuda, kAnyBound, kForDivergence,
     divergence},
    {"scalar-half-math", "Half-precision values are worked on one at a time.", ToolTarget::kCuda,
     kAnyBound, kForScalarHalfMath, scalar_half_math},
    {"expensive-math", "Special functions, divisions or conversions hold the loop.",
     ToolTarget::kCuda, kAnyBound, kForExpensiveMath, expensive_math},
    {"accidental-fp64", "Double precision in a task that has none.", ToolTarget::kCuda, kAnyBound,
     kForAccidentalFp64, accidental_fp64},
    {"integer-division", "Integers are divided by run-time values in the hot loop.",
     ToolTarget::kCuda, kAnyBound, kForIntegerDivision, integer_division},
    {"address-overhead", "Address arithmetic takes the issue slots.", ToolTarget::kCuda, kAnyBound,
     kForAddressOverhead, address_overhead},
    {"unfused-multiply-add", "Multiplications and additions are not fused.", ToolTarget::kCuda,
     kAnyBound, kForUnfusedMultiplyAdd, unfused_multiply_add},
    {"instruction-cache", "The hot code does not fit the instruction cache.", ToolTarget::kCuda,
     kAnyBound, kForInstructionCache, instruction_cache},
    {"wide-fences", "Fences for the whole GPU stand in the hot loop.", ToolTarget::kCuda, kAnyBound,
     kForWideFences, wide_fences},
    {"constant-cache", "Lanes read constant memory at different addresses.", ToolTarget::kCuda,
     kAnyBound, kForConstantCache, constant_cache},
    {"block-shape", "The block size leaves lanes of warps empty.", ToolTarget::kCuda, kAnyBound,
     kForBlockShape, block_shape},
    {"shallow-pipeline", "Matrix units wait for the next tile.", ToolTarget::kCuda, kAnyBound,
     kForShallowPipeline, shallow_pipeline},
};

constexpr Precedence kPrecedences[] = {
    {"register-spill", "far-from-both-ceilings", "unroll",
     "more work in flight needs more registers, and these already spill"},
    {"register-spill", "far-from-both-ceilings", "tile-size",
     "a larger tile per thread needs more registers, and these already spill"},
    {"missing-tensor-cores", "scalar-loads", "",
     "the change to matrix instructions replaces these loads"},
    {"launch-bound", "far-from-both-ceilings", "", "the launches are the wait"},
    {"launch-bound", "small-grid", "", "the launches come first"},
    // About the system.
    {"launch-bound", "unfused-kernels", "", "launch-bound gives the same advice"},
    {"unfused-kernels", "far-from-both-ceilings", "passes",
     "unfused-kernels gives the same advice"},
    {"serial-graph", "small-grid", "", "kernels side by side fill the GPU"},
    {"serial-graph", "far-from-both-ceilings", "grid-size", "kernels side by side fill the GPU"},
    {"small-grid", "far-from-both-ceilings", "grid-size", "small-grid gives the same advice"},
    {"scalar-code", "far-from-both-ceilings", "vectorize", "scalar-code gives the same advice"},
    {"one-thread-busy", "far-from-both-ceilings", "threads",
     "one-thread-busy gives the same advice"},
    {"scalar-loads", "far-from-both-ceilings", "vectorize", "scalar-loads gives the same advice"},
    {"streaming-stores", "far-from-both-ceilings", "streaming",
     "streaming-stores gives the same advice"},
    // About memory.
    {"uncoalesced-access", "scalar-loads", "", "wider loads help once lanes lie side by side"},
    {"uncoalesced-access", "low-memory-parallelism", "", "most of what is in flight is waste"},
    {"uncoalesced-access", "far-from-both-ceilings", "vectorize",
     "wider loads help once lanes lie side by side"},
    {"register-spill", "low-memory-parallelism", "",
     "more loads in flight need more registers, and these already spill"},
    {"register-spill", "register-pressure", "", "the spills come first"},
    {"register-spill", "scalar-loads", "", "the spills come first"},
    {"register-pressure", "low-memory-parallelism", "", "more warps bring more loads"},
    {"low-memory-parallelism", "scalar-loads", "", "it gives the same advice, with more loads"},
    {"register-spill", "uncoalesced-access", "", "the local accesses take the bandwidth"},
    {"atomics-contention", "low-memory-parallelism", "", "the atomics are the wait"},
    {"atomics-contention", "scalar-loads", "", "the atomics are the wait"},
    {"re-read-excess", "far-from-both-ceilings", "passes", "re-read-excess gives the same advice"},
    {"missing-shared-memory-tiling", "far-from-both-ceilings", "shared-memory",
     "missing-shared-memory-tiling gives the same advice"},
    {"missing-shared-memory-tiling", "scalar-loads", "", "tiling replaces these loads"},
    {"missing-shared-memory-tiling", "low-memory-parallelism", "", "tiling replaces these loads"},
    {"missing-tensor-cores", "missing-shared-memory-tiling", "",
     "matrix instructions bring their own tiling"},
    {"missing-tensor-cores", "missing-register-tiling", "",
     "matrix instructions bring their own tiling"},
    {"missing-register-tiling", "far-from-both-ceilings", "tile-size",
     "missing-register-tiling gives the same advice"},
    {"synchronous-staging", "low-memory-parallelism", "",
     "copies ahead put the bytes under way without registers"},
    {"synchronous-staging", "far-from-both-ceilings", "pipeline",
     "synchronous-staging gives the same advice"},
    {"low-memory-parallelism", "far-from-both-ceilings", "unroll",
     "low-memory-parallelism gives the same advice"},
    // About arithmetic, latency and the launch.
    {"integer-division", "address-overhead", "", "the divisions are most of that arithmetic"},
    {"integer-division", "expensive-math", "", "the conversions belong to the integer divisions"},
    {"accidental-fp64", "expensive-math", "",
     "the conversions belong to the double-precision work"},
    {"accidental-fp64", "dependent-chain", "", "double precision makes the chain long"},
    {"expensive-math", "dependent-chain", "", "the special functions make the chain long"},
    {"expensive-math", "unfused-multiply-add", "", "the special functions come first"},
    {"register-spill", "dependent-chain", "", "the spills make the chain long"},
    {"register-spill", "occupancy-limiter", "", "the spills come first"},
    {"uncoalesced-access", "address-overhead", "", "the accesses come first"},
    {"uncoalesced-access", "occupancy-limiter", "", "more warps would only fetch more waste"},
    {"missing-shared-memory-tiling", "address-overhead", "", "tiling replaces these accesses"},
    {"missing-shared-memory-tiling", "dependent-chain", "", "tiling replaces this loop"},
    {"missing-tensor-cores", "address-overhead", "", "matrix instructions replace this loop"},
    {"missing-tensor-cores", "dependent-chain", "", "matrix instructions replace this loop"},
    {"missing-tensor-cores", "unfused-multiply-add", "", "matrix instructions replace this loop"},
    {"missing-tensor-cores", "occupancy-limiter", "", "matrix instructions bring their own tiling"},
    {"missing-tensor-cores", "scalar-half-math", "", "matrix instructions replace this arithmetic"},
    {"atomics-contention", "dependent-chain", "", "the atomics are the wait"},
    {"atomics-contention", "occupancy-limiter", "", "more warps would only queue for the atomics"},
    {"atomics-contention", "divergence", "", "the lanes wait in the retry loop"},
    {"small-grid", "occupancy-limiter", "", "there are too few blocks to begin with"},
    {"small-grid", "load-imbalance", "", "the grid explains the idle multiprocessors"},
    {"small-grid", "dependent-chain", "unroll", "more blocks come first"},
    {"small-grid", "low-memory-parallelism", "",
     "too few blocks are the reason that little is under way"},
    {"divergence", "dependent-chain", "", "the lanes that are switched off come first"},
    {"excessive-barriers", "occupancy-limiter", "", "more warps would wait at the same barriers"},
    {"synchronous-staging", "excessive-barriers", "", "the barriers wait for the copies"},
    {"bank-conflicts", "excessive-barriers", "",
     "the barriers wait for the slowest shared-memory access"},
    {"load-imbalance", "occupancy-limiter", "", "idle multiprocessors come first"},
    {"dependent-chain", "low-memory-parallelism", "", "the chain holds the loads back"},
};

}  // namespace

std::span<const Tool> tools() { return kTools; }

std::span<const Precedence> precedences() { return kPrecedences; }

}  // namespace kernelpro
