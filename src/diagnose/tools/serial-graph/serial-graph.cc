// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
constexpr double kLeastGain = 1.1;
// Kernels that run together share bandwidth and start one after another.
constexpr double kSharing = 0.1;

std::optional<Finding> serial_graph(const Facts& facts) {
  const double levels = facts("plan.levels");
  const double needed = facts("plan.data_levels");
  const double kernels = facts("plan.kernels");
  const double units = facts("machine.parallel_units");
  const double blocks = facts("plan.median_blocks");
  if (kernels < 2 || needed < 1 || levels <= needed || units < 1) return std::nullopt;
  // A kernel that fills the GPU leaves no room for another one.
  const double fill = blocks / units;
  if (fill >= 1) return std::nullopt;
  const double left = std::max(needed / levels, fill);
  const double likely = 1 / std::min(1.0, left + kSharing);
  if (likely < kLeastGain) return std::nullopt;

  Finding finding;
  finding.severity = likely >= 2 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"plan.levels", "plan.data_levels", "plan.median_blocks", "plan.kernels",
                     "machine.parallel_units"};
  finding.cause = "The call's graph runs " + number(levels) +
                  " nodes one after another, but their data dependencies require only " +
                  number(needed) + (needed == 1 ? " step" : " steps") + "; a kernel has " +
                  number(blocks) + " blocks (median) for " + number(units) +
                  " SMs, so most of the GPU is idle each time.";
  finding.prescriptions = {
      {"fusion",
       "Combine independent kernels into one launch: let a grid dimension choose the kernel, or "
       "give each a range of blocks.",
       "they need very different block sizes, registers or shared memory"},
      {"streams",
       "Launch independent kernels on separate streams, forked from and joined to the call's "
       "stream by events (cudaEventRecord, cudaStreamWaitEvent): the captured graph then has "
       "branches.",
       "they depend on each other through memory that is not among their parameters"}};
  finding.likely_speedup = likely;
  finding.upper_speedup = levels / needed;
  return finding;
}

constexpr const char* kSerialGraphNeeds[] = {"plan.levels", "plan.data_levels", "plan.kernels",
                                             "plan.median_blocks", "machine.parallel_units"};

}  // namespace

extern const Tool kSerialGraph;
const Tool kSerialGraph{
    .name = "serial-graph",
    .summary = "Independent kernels, too small for the GPU, run one after another.",
    .target = ToolTarget::kCuda,
    .needs = kSerialGraphNeeds,
    .analyse = serial_graph,
    .scope = Scope::kCall};

}  // namespace kernelpro
