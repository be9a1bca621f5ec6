// SPDX-License-Identifier: Apache-2.0
// What the binary and the launch plan say before anything runs.
#include "core/metrics_tables.h"

namespace kernelpro {

namespace {
constexpr Metric kMetrics[] = {
    // CUDA target: ptxas, the launch plan and SASS. Counts are over the hot loops of the kernel
    // that is named in the evidence's text "kernel".
    {"launch__registers_per_thread", "1", "registers of the largest kernel"},
    {"launch__grid_size", "1", "blocks of the largest launch"},
    {"launch__block_size", "1", "threads per block of the largest launch"},
    {"kernel.share", "1", "the kernel's part of the kernels' summed time, 0 to 1"},
    {"kernel.launches", "1", "launches of this kernel in one call"},
    {"kernel.concurrent", "1", "1 when other kernels of the call may run at the same time"},
    {"launch__shared_mem_per_block_dynamic", "byte", "dynamic shared memory of the largest launch"},
    {"launch__shared_mem_per_block_static", "byte", "static shared memory"},
    {"launch__cluster_size", "1", "blocks in a cluster; 1 without clusters"},
    {"launch__occupancy_limit_registers", "1", "resident blocks that registers allow"},
    {"launch__occupancy_limit_shared_mem", "1", "resident blocks that shared memory allows"},
    {"launch__occupancy_limit_warps", "1", "resident blocks that warps allow"},
    {"launch__occupancy_limit_blocks", "1", "resident blocks that the hardware allows"},
    {"launch__occupancy_limit_barriers", "1", "resident blocks that named barriers allow"},
    {"sm__maximum_warps_per_active_cycle_pct", "%", "theoretical occupancy"},
    {"launch__waves_per_multiprocessor", "1", "blocks over what all SMs hold at once"},
    {"plan.kernels", "1", "kernel launches in one call"},
    {"plan.memcpys", "1", "copies in one call"},
    {"plan.memcpy_bytes", "byte", "their bytes"},
    {"plan.memsets", "1", "memsets in one call"},
    {"plan.memset_bytes", "byte", "their bytes"},
    {"plan.levels", "1", "nodes on the longest path of the call's graph"},
    {"ptxas.stack_bytes", "byte", "stack frame per thread"},
    {"ptxas.spill_store_bytes", "byte", "register spill stores per thread"},
    {"ptxas.spill_load_bytes", "byte", "register spill loads per thread"},
    {"ptxas.shared_bytes", "byte", "static shared memory per block"},
    {"sass.hot.instructions", "1", "instructions in the hot loops"},
    {"sass.hot.global_loads", "1", "global loads (LDG) in the hot loops"},
    {"sass.hot.global_loads_128", "1", "of them 128-bit"},
    {"sass.hot.global_loads_64", "1", "of them 64-bit"},
    {"sass.hot.global_loads_32", "1", "of them 32-bit"},
    {"sass.hot.global_loads_narrow", "1", "of them 8- or 16-bit"},
    {"sass.hot.global_stores", "1", "global stores (STG) in the hot loops"},
    {"sass.hot.global_stores_128", "1", "of them 128-bit"},
    {"sass.hot.shared_loads", "1", "shared-memory loads (LDS, LDSM) in the hot loops"},
    {"sass.hot.shared_stores", "1", "shared-memory stores (STS) in the hot loops"},
    {"sass.hot.async_copies", "1",
     "asynchronous copies (LDGSTS, UBLKCP, UTMALDG) in the hot loops"},
    {"sass.hot.local_loads", "1", "local-memory loads (LDL) in the hot loops"},
    {"sass.hot.local_stores", "1", "local-memory stores (STL) in the hot loops"},
    {"sass.hot.ffma", "1", "fp32 multiply-adds, adds and multiplies in the hot loops"},
    {"sass.hot.half_math", "1", "HFMA2, HADD2, HMUL2 in the hot loops"},
    {"sass.hot.fp64", "1", "fp64 arithmetic in the hot loops"},
    {"sass.hot.integer", "1", "integer and address arithmetic in the hot loops"},
    {"sass.hot.mufu", "1", "special-function operations (MUFU) in the hot loops"},
    {"sass.hot.barriers", "1", "block barriers (BAR) in the hot loops"},
    {"sass.hmma", "1", "HMMA, IMMA, DMMA instructions in the kernel"},
    {"sass.hgmma", "1", "warpgroup matrix instructions (HGMMA, QGMMA, IGMMA) in the kernel"},
    {"sass.local_loads", "1", "local-memory loads in the kernel"},
    {"sass.local_stores", "1", "local-memory stores in the kernel"},
};
}  // namespace

std::span<const Metric> static_metrics() { return kMetrics; }

}  // namespace kernelpro
