// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "core/machine.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

std::optional<Finding> at_compute_ceiling(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  if (roof.time_us <= 0 || roof.compute_floor_us <= 0) return std::nullopt;
  const double fraction = roof.compute_floor_us / roof.time_us;
  if (fraction < 0.9) return std::nullopt;
  // A rate measured beside other work is too low: reaching it is no reason to stop.
  if (facts.maybe("ceiling.disturbed").value_or(0) > 0) return std::nullopt;

  Finding finding;
  finding.stop = true;
  finding.metrics = {"task.flops", "ceiling.fma_rate", "timing.median"};
  finding.cause = "The task's " + number(facts("task.flops") * 1e-9, 3) + " GFLOP take at least " +
                  human_us(roof.compute_floor_us) +
                  " at the measured arithmetic rate; the call takes " + human_us(roof.time_us) +
                  ", which is " +
                  (fraction >= 1 ? "at the ceiling (" + ceiling_share(fraction) + ")."
                                 : percent(fraction) + " of that ceiling.");
  finding.prescriptions = {
      {"algorithm",
       "Stop tuning this kernel: only doing less arithmetic, or doing it on a faster unit, can "
       "help.",
       "the task's contract fixes the algorithm or the precision"}};
  return finding;
}

constexpr const char* kAtComputeCeilingNeeds[] = {"timing.median", "ceiling.fma_rate",
                                                  "task.flops"};

}  // namespace

extern const Tool kAtComputeCeiling;
const Tool kAtComputeCeiling{
    .name = "at-compute-ceiling",
    .summary = "Arithmetic already runs at the measured rate of its unit: stop here.",
    .target = ToolTarget::kAny,
    .bounds = kComputeLike,
    .needs = kAtComputeCeilingNeeds,
    .analyse = at_compute_ceiling,
    .scope = Scope::kCall};

}  // namespace kernelpro
