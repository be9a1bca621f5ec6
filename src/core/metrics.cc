// SPDX-License-Identifier: Apache-2.0
#include "core/metrics.h"

namespace kernelpro {

namespace {
constexpr Metric kMetrics[] = {
    // Theory of the task, for the case that was timed.
    {"task.compulsory_bytes", "byte", "every input read once and every output written once"},
    {"task.output_bytes", "byte", "every output written once"},
    {"task.flops", "flop", "floating-point operations that the task declares"},
    {"task.matmul_flops", "flop", "how many of them are matrix products"},
    {"task.half_inputs", "1", "1 when every floating-point input is fp16 or bf16"},
    // Measured ceilings of the machine.
    {"ceiling.copy_bandwidth", "byte/s", "a large copy, read plus written"},
    {"ceiling.fma_rate", "flop/s", "fp32 fused multiply-adds, two operations each"},
    {"ceiling.tensor_rate", "flop/s", "half-precision matrix units"},
    {"machine.parallel_units", "1", "hardware threads, or streaming multiprocessors"},
    // Timing of the candidate.
    {"timing.median", "us", "one call, the slowest timed case"},
    {"timing.low", "us", "lower end of the 95 % interval"},
    {"timing.high", "us", "upper end of the 95 % interval"},
    {"roofline.memory_floor", "us", "compulsory bytes over the measured copy bandwidth"},
    {"roofline.compute_floor", "us",
     "operations over the measured rate of the unit that may do them"},
    {"roofline.achieved_bandwidth", "byte/s", "compulsory bytes over the measured time"},
    {"roofline.achieved_flops", "flop/s", "operations over the measured time"},
    // CPU target.
    {"cpu.threads_busy", "1", "processor time over wall time while timing"},
    {"cpu.asm.hot.instructions", "1", "instructions in the hot loops"},
    {"cpu.asm.hot.packed_fp", "1", "packed floating-point arithmetic in the hot loops"},
    {"cpu.asm.hot.scalar_fp", "1", "scalar floating-point arithmetic in the hot loops"},
    {"cpu.asm.hot.vector_bits", "bit", "widest vector register in the hot loops' arithmetic"},
    {"cpu.asm.hot.streaming_stores", "1", "non-temporal stores in the code that launch reaches"},
    {"cpu.asm.hot.calls", "1", "calls in the hot loops"},
    {"cpu.perf.ipc", "1", "instructions per cycle, from perf events"},
    {"cpu.perf.cache_misses", "1", "last-level cache misses per call, from perf events"},
    // CUDA target: ptxas, the launch plan and SASS. Counts are over the hot loops of the kernel
    // that is named in the evidence's text "kernel".
    {"launch__registers_per_thread", "1", "registers of the largest kernel"},
    {"launch__grid_size", "1", "blocks of the largest launch"},
    {"launch__block_size", "1", "threads per block of the largest launch"},
    {"launch__waves_per_multiprocessor", "1", "blocks over what all SMs hold at once"},
    {"plan.kernels", "1", "kernel launches in one call"},
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

std::span<const Metric> metrics() { return kMetrics; }

const Metric* find_metric(std::string_view name) {
  for (const Metric& metric : kMetrics) {
    if (metric.name == name) return &metric;
  }
  return nullptr;
}

}  // namespace kernelpro
