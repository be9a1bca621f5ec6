// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kShare = 0.08;  // of the waits
constexpr double kClearShare = 0.2;
constexpr double kGone = 0.95;      // of that waiting
constexpr double kNearRoof = 0.85;  // above this, fences cost next to nothing
constexpr double kLeastGain = 1.05;
// Without counters (an H200: a bf16 product with one in each k-block went from 250 to 179 us).
constexpr double kLikelyWaiting = 0.75;
constexpr double kLeastWaiting = 0.5;

std::optional<Finding> wide_fences(const Facts& facts) {
  const double fences = facts.maybe("sass.hot.wide_fences").value_or(0);
  const KernelModel& model = facts.model();
  const auto share = model.stall(Stall::kMembar);
  // Only fences cause this stall, wherever in the code they are.
  const bool seen = share && *share >= kClearShare;
  if (fences < 1 && !seen) return std::nullopt;
  if (facts.roofline().known() && facts.roofline().fraction >= kNearRoof) return std::nullopt;
  Effect effect, none;
  if (share) {
    if (*share < kShare) return std::nullopt;
    effect.waiting = 1 - kGone * *share;
    none.waiting = 1 - *share;
  } else {
    effect.waiting = kLikelyWaiting;
    none.waiting = kLeastWaiting;
  }
  Finding finding;
  finding.likely_speedup = model.gain(effect).likely;
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = share && *share >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.wide_fences"};
  finding.cause = (fences < 1 ? "GPU-wide fences (MEMBAR) are on a path that warps take often"
                              : number(fences) + " GPU-wide fences (MEMBAR) are in the hot loop") +
                  ": each waits hundreds of cycles, until all of the warp's reads and writes are "
                  "visible everywhere";
  if (share) {
    finding.cause += "; " + percent(*share) + " of the warps' stall time is waiting for them";
    finding.metrics.emplace_back("smsp__average_warps_issue_stalled_membar_per_issue_active.ratio");
  }
  finding.cause += ".";
  finding.sites = line_of(facts, {"sass.hot.wide_fences", "sass.hot.fences"});
  finding.prescriptions = {
      {"synchronization",
       "Use the narrowest scope: `mbarrier.arrive` without `.release.cluster` (or with `.relaxed`) "
       "where only the stage is handed over, `__threadfence_block` within a block, acquire and "
       "release on the flag itself instead of `__threadfence`.",
       "another block reads what was written before the fence"},
      {"synchronization",
       "Where it comes from `fence.proxy.async`: that is compiled to a GPU-wide fence, and "
       "`fence.proxy.async.shared::cta` to one of the block.",
       "asynchronous copies read global memory that the warp has just written"},
      {"algorithm", "Fence once after the loop, or exchange data through a second kernel.", ""}};
  return finding;
}

constexpr const char* kWideFencesNeeds[] = {"sass.hot.instructions"};

}  // namespace

extern const Tool kWideFences;
const Tool kWideFences{.name = "wide-fences",
                       .summary = "GPU-wide memory fences are in the hot loop.",
                       .target = ToolTarget::kCuda,
                       .needs = kWideFencesNeeds,
                       .analyse = wide_fences};

}  // namespace kernelpro
