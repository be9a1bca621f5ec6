// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "core/machine/machine.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kBusy = 0.82;      // of what good kernels reach, without the task
constexpr double kWholeCall = 0.7;  // of the call's time

bool computes(Resource resource) {
  return resource != Resource::kDram && resource != Resource::kL2 && resource != Resource::kL1 &&
         resource != Resource::kAtomics && resource != Resource::kLsu;
}

// Without the task: an arithmetic unit, or the schedulers, are as busy as good kernels make them.
std::optional<Finding> by_counters(const Facts& facts) {
  const KernelModel& model = facts.model();
  if (!model.counted() || !computes(model.busiest()) || model.demand() < kBusy) {
    return std::nullopt;
  }
  if (facts.maybe("kernel.share").value_or(1) < kWholeCall) return std::nullopt;
  Finding finding;
  finding.stop = true;
  finding.metrics = {"timing.median", "smsp__issue_active.avg.per_cycle_active"};
  finding.cause = "The kernel keeps " + std::string(resource_name(model.busiest())) + " busy " +
                  percent(*model.busy(model.busiest())) + " of the time, " +
                  percent(model.demand()) +
                  " of what good kernels reach (estimated from counters: whether the task needs "
                  "all of these instructions is unknown).";
  finding.prescriptions = {
      {"algorithm",
       "Stop tuning this kernel, unless it can do with fewer instructions or on a faster unit.",
       ""}};
  return finding;
}

std::optional<Finding> at_compute_ceiling(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  if (!roof.known() && !facts.maybe("task.flops")) return by_counters(facts);
  if (roof.time_us <= 0 || roof.compute_floor_us <= 0 || roof.less_work) return std::nullopt;
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

constexpr const char* kAtComputeCeilingNeeds[] = {"timing.median", "ceiling.fma_rate"};
constexpr const char* kAtComputeCeilingOneOf[] = {"task.flops",
                                                  "smsp__issue_active.avg.per_cycle_active"};

}  // namespace

extern const Tool kAtComputeCeiling;
const Tool kAtComputeCeiling{
    .name = "at-compute-ceiling",
    .summary = "Arithmetic already runs at the measured rate of its unit: stop here.",
    .target = ToolTarget::kAny,
    .bounds = kComputeLike,
    .needs = kAtComputeCeilingNeeds,
    .analyse = at_compute_ceiling,
    .scope = Scope::kCall,
    .one_of = kAtComputeCeilingOneOf};

}  // namespace kernelpro
