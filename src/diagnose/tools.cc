// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools.h"

namespace kernelpro {

// Every tool, by the name of the row that its folder exports, in help order.
#define KERNELPRO_TOOLS(TOOL)                    \
  TOOL(kAtBandwidthCeiling)                      \
  TOOL(kAtComputeCeiling)                        \
  TOOL(kFarFromBothCeilings)                     \
  TOOL(kCostliestPlaces)                         \
  TOOL(kScalarCode)                              \
  TOOL(kOneThreadBusy)                           \
  TOOL(kStreamingStores)                         \
  TOOL(kRegisterSpill)                           \
  TOOL(kScalarLoads)                             \
  TOOL(kMissingTensorCores)                      \
  TOOL(kProductsFinerThanAsked)                  \
  TOOL(kProductsInParts)                         \
  TOOL(kSmallGrid)                               \
  /* About the system */                         \
  TOOL(kLaunchBound)                             \
  TOOL(kUnfusedKernels)                          \
  TOOL(kOperatorAboveFloor)                      \
  TOOL(kProductsOffTensorCores)                  \
  TOOL(kSerialGraph)                             \
  TOOL(kUnitsInTurn)                             \
  TOOL(kProductsTwice)                           \
  TOOL(kDeviceCopies)                            \
  TOOL(kHostCopies)                              \
  TOOL(kHostSyncs)                               \
  TOOL(kAllocationsInPath)                       \
  /* About memory */                             \
  TOOL(kUncoalescedAccess)                       \
  TOOL(kReReadExcess)                            \
  TOOL(kExcessWrites)                            \
  TOOL(kL2Locality)                              \
  TOOL(kBankConflicts)                           \
  TOOL(kMissingSharedMemoryTiling)               \
  TOOL(kMissingRegisterTiling)                   \
  TOOL(kRegisterPressure)                        \
  TOOL(kAtomicsContention)                       \
  TOOL(kSynchronousStaging)                      \
  TOOL(kMissingTma)                              \
  TOOL(kLowMemoryParallelism)                    \
  /* About arithmetic, latency and the launch */ \
  TOOL(kOccupancyLimiter)                        \
  TOOL(kLoadImbalance)                           \
  TOOL(kDominantStall)                           \
  TOOL(kExcessiveBarriers)                       \
  TOOL(kDependentChain)                          \
  TOOL(kDivergence)                              \
  TOOL(kScalarHalfMath)                          \
  TOOL(kExpensiveMath)                           \
  TOOL(kAccidentalFp64)                          \
  TOOL(kIntegerDivision)                         \
  TOOL(kAddressOverhead)                         \
  TOOL(kUnfusedMultiplyAdd)                      \
  TOOL(kInstructionCache)                        \
  TOOL(kWideFences)                              \
  TOOL(kConstantCache)                           \
  TOOL(kBlockShape)                              \
  TOOL(kUnbalancedRoles)                         \
  TOOL(kQueuedCopies)                            \
  TOOL(kShallowPipeline)

#define KERNELPRO_DECLARE(row) extern const Tool row;
KERNELPRO_TOOLS(KERNELPRO_DECLARE)

namespace {

constexpr Precedence kPrecedences[] = {
    {"costliest-places", "far-from-both-ceilings", "", "it names the places"},
    {"register-spill", "far-from-both-ceilings", "unroll",
     "more work in flight needs more registers, and these already spill"},
    {"register-spill", "far-from-both-ceilings", "tile-size",
     "a larger tile per thread needs more registers, and these already spill"},
    {"missing-tensor-cores", "scalar-loads", "",
     "the change to matrix instructions replaces these loads"},
    {"launch-bound", "far-from-both-ceilings", "", "the time goes into launches"},
    {"launch-bound", "small-grid", "", "the launches come first"},
    // System.
    {"launch-bound", "unfused-kernels", "", "launch-bound gives the same advice"},
    {"unfused-kernels", "far-from-both-ceilings", "passes",
     "unfused-kernels gives the same advice"},
    {"operator-above-floor", "far-from-both-ceilings", "", "it names the operator"},
    {"products-off-tensor-cores", "far-from-both-ceilings", "", "it names another unit"},
    {"products-off-tensor-cores", "operator-above-floor", "tensor-cores",
     "products-off-tensor-cores gives the same advice"},
    {"missing-tensor-cores", "products-off-tensor-cores", "", "it names the kernel"},
    {"serial-graph", "small-grid", "", "running kernels concurrently fills the GPU"},
    {"serial-graph", "far-from-both-ceilings", "grid-size",
     "running kernels concurrently fills the GPU"},
    {"small-grid", "far-from-both-ceilings", "grid-size", "small-grid gives the same advice"},
    {"scalar-code", "far-from-both-ceilings", "vectorize", "scalar-code gives the same advice"},
    {"one-thread-busy", "far-from-both-ceilings", "threads",
     "one-thread-busy gives the same advice"},
    {"scalar-loads", "far-from-both-ceilings", "vectorize", "scalar-loads gives the same advice"},
    {"streaming-stores", "far-from-both-ceilings", "streaming",
     "streaming-stores gives the same advice"},
    // Memory.
    {"uncoalesced-access", "scalar-loads", "", "wider loads help only once accesses are coalesced"},
    {"uncoalesced-access", "low-memory-parallelism", "", "most of what is in flight is waste"},
    {"uncoalesced-access", "far-from-both-ceilings", "vectorize",
     "wider loads help only once accesses are coalesced"},
    {"register-spill", "low-memory-parallelism", "",
     "more loads in flight need more registers, and these already spill"},
    {"register-spill", "register-pressure", "", "the spills come first"},
    {"register-spill", "scalar-loads", "", "the spills come first"},
    {"register-pressure", "low-memory-parallelism", "", "more warps bring more loads in flight"},
    {"low-memory-parallelism", "scalar-loads", "", "it gives the same advice, with more loads"},
    {"register-spill", "uncoalesced-access", "", "the local accesses take the bandwidth"},
    {"atomics-contention", "low-memory-parallelism", "", "the stalls are on the atomics"},
    {"atomics-contention", "scalar-loads", "", "the stalls are on the atomics"},
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
     "prefetching copies put bytes in flight without registers"},
    {"synchronous-staging", "far-from-both-ceilings", "pipeline",
     "synchronous-staging gives the same advice"},
    {"low-memory-parallelism", "far-from-both-ceilings", "unroll",
     "low-memory-parallelism gives the same advice"},
    // Arithmetic, latency and the launch.
    {"integer-division", "address-overhead", "", "the divisions make up most of that arithmetic"},
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
    {"atomics-contention", "dependent-chain", "", "the stalls are on the atomics"},
    {"atomics-contention", "occupancy-limiter", "", "more warps would only queue at the atomics"},
    {"atomics-contention", "divergence", "", "the lanes wait in the retry loop"},
    {"small-grid", "occupancy-limiter", "", "there are too few blocks in the first place"},
    {"small-grid", "load-imbalance", "", "the grid explains the idle SMs"},
    {"small-grid", "dependent-chain", "unroll", "more blocks come first"},
    {"small-grid", "low-memory-parallelism", "", "too few blocks explain why little is in flight"},
    {"divergence", "dependent-chain", "", "the inactive lanes come first"},
    {"excessive-barriers", "occupancy-limiter", "", "more warps would wait at the same barriers"},
    {"synchronous-staging", "excessive-barriers", "", "the barriers wait for the copies"},
    {"bank-conflicts", "excessive-barriers", "",
     "the barriers wait for the slowest shared-memory access"},
    {"load-imbalance", "occupancy-limiter", "", "the idle SMs come first"},
    {"shallow-pipeline", "occupancy-limiter", "", "a deeper ring needs no more warps"},
    {"synchronous-staging", "occupancy-limiter", "", "copies ahead need no more warps"},
    {"unbalanced-roles", "shallow-pipeline", "", "the other warps wait for these, not for copies"},
    {"unbalanced-roles", "dominant-stall", "", "the stalls are told by role"},
    {"queued-copies", "divergence", "", "the lanes part for the copies"},
    {"unbalanced-roles", "occupancy-limiter", "", "more warps would wait for the same ones"},
    {"queued-copies", "unbalanced-roles", "", "it says why the warps that set the pace wait"},
    {"dependent-chain", "low-memory-parallelism", "", "the chain holds the loads back"},
};

}  // namespace

std::span<const Tool> tools() {
#define KERNELPRO_COPY(row) row,
  static const Tool all[] = {KERNELPRO_TOOLS(KERNELPRO_COPY)};
  return all;
}

std::span<const Precedence> precedences() { return kPrecedences; }

}  // namespace kernelpro
