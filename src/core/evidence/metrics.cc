// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/metrics.h"

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "core/evidence/metrics_tables.h"

namespace kernelpro {

namespace {

// Theory of the task, for the timed case.
constexpr MetricRow kTaskRows[] = {
    {"task.compulsory_bytes", "byte", "every input read once and every output written once"},
    {"task.output_bytes", "byte", "every output written once"},
    {"task.flops", "flop", "floating-point operations that the task declares"},
    {"task.matmul_flops", "flop", "how many of them are matrix products"},
    {"task.half_inputs", "1", "1 when every floating-point input is fp16 or bf16"},
    {"task.tf32", "1", "1 when fp32 inputs may be multiplied as TF32"},
};

// Measured ceilings of the machine.
constexpr MetricRow kMachineRows[] = {
    {"ceiling.copy_bandwidth", "byte/s", "a large copy, read plus written"},
    {"ceiling.fma_rate", "flop/s", "fp32 fused multiply-adds, two operations each"},
    {"ceiling.tensor_rate", "flop/s", "half-precision matrix units"},
    {"ceiling.disturbed", "1", "1 when other work ran beside every measurement of the ceilings"},
    {"machine.parallel_units", "1", "hardware threads, or streaming multiprocessors"},
};

// How long the task takes at them.
constexpr MetricRow kFloorRows[] = {
    {"roofline.memory_floor", "us", "compulsory bytes over the measured copy bandwidth"},
    {"roofline.compute_floor", "us",
     "operations over the measured rate of the unit that may do them"},
};

// Timing of the candidate.
constexpr MetricRow kTimingRows[] = {
    {"timing.median", "us", "one call, the slowest timed case"},
    {"timing.low", "us", "lower end of the 95 % interval"},
    {"timing.high", "us", "upper end of the 95 % interval"},
    {"roofline.achieved_bandwidth", "byte/s", "compulsory bytes over the measured time"},
    {"roofline.achieved_flops", "flop/s", "operations over the measured time"},
};

// Other activity on the machine while the candidate was timed.
constexpr MetricRow kLoadRows[] = {
    {"load.foreign_cpu", "1", "share of the processors that other processes used while timing"},
    {"load.pairs_dropped", "1", "timed pairs that other work disturbed, and that do not count"},
    {"load.pairs_disturbed", "1", "timed pairs that other work disturbed, and that count"},
    {"load.gpu_processes", "1", "other processes that had work on the GPU while timing"},
};

// CPU target.
constexpr MetricRow kThreadRows[] = {
    {"cpu.threads_busy", "1", "processor time over wall time while timing"},
};

constexpr MetricRow kPerfEventRows[] = {
    {"cpu.perf.ipc", "1", "instructions per cycle, from perf events"},
    {"cpu.perf.cache_misses", "1", "last-level cache misses per call, from perf events"},
};

constexpr MetricRow kHostCodeRows[] = {
    {"cpu.asm.hot.instructions", "1", "instructions in the hot loops"},
    {"cpu.asm.hot.packed_fp", "1", "packed floating-point arithmetic in the hot loops"},
    {"cpu.asm.hot.scalar_fp", "1", "scalar floating-point arithmetic in the hot loops"},
    {"cpu.asm.hot.vector_bits", "bit", "widest vector register in the hot loops' arithmetic"},
    {"cpu.asm.hot.streaming_stores", "1", "non-temporal stores in the code that launch reaches"},
    {"cpu.asm.hot.scalar_share", "1",
     "estimated part of the executed instructions that is in loops of scalar arithmetic"},
    {"cpu.asm.hot.packed_version", "1", "1: a packed loop does the same as the scalar hot loop"},
    {"cpu.asm.hot.calls", "1", "calls in the hot loops"},
    {"cpu.asm.parallel_regions", "1",
     "places in the code that start threads or wake a thread team"},
};

constexpr MetricTable kTables[] = {
    {Family::kTask, Level::kTiming, Scope::kTask, kTaskRows},
    {Family::kCeilings, Level::kTiming, Scope::kMachine, kMachineRows},
    {Family::kCeilings, Level::kTiming, Scope::kCall, kFloorRows},
    {Family::kTiming, Level::kTiming, Scope::kCall, kTimingRows},
    {Family::kLoad, Level::kTiming, Scope::kMachine, kLoadRows},
    {Family::kProcessor, Level::kTiming, Scope::kCall, kThreadRows},
    {Family::kProcessor, Level::kCounters, Scope::kCall, kPerfEventRows},
    {Family::kHostCode, Level::kStatic, Scope::kCall, kHostCodeRows},
};

std::vector<Metric> registered() {
  std::vector<Metric> all;
  const std::span<const MetricTable> lists[] = {kTables, static_tables(), counter_tables(),
                                                trace_tables()};
  for (const std::span<const MetricTable> list : lists) {
    for (const MetricTable& table : list) {
      for (const MetricRow& row : table.rows) {
        all.push_back(
            {row.name, row.unit, row.description, table.family, table.level, table.scope});
      }
    }
  }
  return all;
}

}  // namespace

std::span<const Metric> metrics() {
  static const std::vector<Metric> all = registered();
  return all;
}

std::span<const Metric> metrics_of(Family family) {
  const std::span<const Metric> all = metrics();
  const auto of_family = [&](const Metric& metric) { return metric.family == family; };
  const auto begin = std::find_if(all.begin(), all.end(), of_family);
  return {begin, std::find_if_not(begin, all.end(), of_family)};
}

const Metric* find_metric(std::string_view name) {
  static const std::map<std::string_view, const Metric*> by_name = [] {
    std::map<std::string_view, const Metric*> map;
    for (const Metric& metric : metrics()) map[metric.name] = &metric;
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace kernelpro
