// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kShare = 0.3;
constexpr double kBusy = 0.75;
constexpr double kLeastGain = 1.05;

std::optional<Finding> shallow_pipeline(const Facts& facts) {
  const double warpgroup = facts("sass.hgmma"), warp = facts("sass.hmma");
  if (warpgroup + warp <= 0 || facts.roofline().theory == Bound::kMemory) return std::nullopt;
  // Without asynchronous copies, leave it to synchronous-staging.
  if (facts.maybe("sass.ldgsts").value_or(0) + facts.maybe("sass.bulk_copies").value_or(0) <= 0) {
    return std::nullopt;
  }
  const KernelModel& model = facts.model();
  if (!model.stall("barrier") || model.demand() >= kBusy) return std::nullopt;
  const double share = stalls(facts, {"barrier", "long_scoreboard", "gmma", "sleeping"}, 0);
  if (share < kShare) return std::nullopt;
  Effect effect, none;
  effect.waiting = 1 - 0.5 * share;
  none.waiting = 1 - share;
  Finding finding;
  finding.likely_speedup = model.gain(effect).likely;
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  const bool specialised = facts.maybe("sass.register_reallocations").value_or(0) > 0;
  finding.severity = Severity::kWarning;
  finding.metrics = {warpgroup > 0 ? "sass.hgmma" : "sass.hmma",
                     "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"};
  finding.cause =
      "The tensor cores are busy for " + percent(model.busy(Resource::kTensor).value_or(0)) +
      " of the time; " + percent(share) +
      " of the warps' stall time is waiting for the next tile (barriers, copies, matrix results).";
  finding.prescriptions = {
      {"pipeline", "Use more stages: three or four tiles in flight while one is multiplied.",
       "shared memory has no space for another tile"}};
  if (warpgroup > 0 && !specialised) {
    finding.prescriptions.push_back(
        {"pipeline",
         "Specialise warps: one producer warp that starts TMA copies, two consumer warpgroups, an "
         "mbarrier pair per stage, registers moved with `setmaxnreg`.",
         "the product is small"});
  }
  finding.prescriptions.push_back({"tile-size",
                                   "Use a larger tile per block: more matrix work per copied byte.",
                                   "the tiles would no longer fill a wave"});
  return finding;
}

constexpr const char* kShallowPipelineNeeds[] = {"sass.hmma", "sass.hgmma"};

}  // namespace

extern const Tool kShallowPipeline;
const Tool kShallowPipeline{.name = "shallow-pipeline",
                            .summary = "The tensor cores wait for the next tile.",
                            .target = ToolTarget::kCuda,
                            .bounds = kNotMemoryBound,
                            .needs = kShallowPipelineNeeds,
                            .analyse = shallow_pipeline};

}  // namespace kernelpro
