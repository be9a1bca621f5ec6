// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kAddressPart = 0.25;  // of the hot loop's instructions
constexpr double kQueued = 0.15;       // of the waits, for room in the memory queues
constexpr double kLeastGain = 1.05;

std::optional<Finding> missing_tma(const Facts& facts) {
  const double copies = facts("sass.hot.ldgsts");
  const double instructions = facts("sass.hot.instructions");
  if (copies < 2 || instructions <= 0 || !facts.has(GpuFeature::kTma)) return std::nullopt;
  if (facts.maybe("sass.bulk_copies").value_or(0) > 0) return std::nullopt;
  const KernelModel& model = facts.model();
  const double address = facts("sass.hot.address") / instructions;
  const double queued = stalls(facts, {Stall::kLgThrottle, Stall::kMioThrottle}, 0);
  if (address < kAddressPart && queued < kQueued) return std::nullopt;
  if (!model.counted() && facts.roofline().fraction >= 0.6) return std::nullopt;

  // The copies, and most of their address arithmetic, leave the loop.
  const double removed = std::min(0.4, copies / instructions + 0.5 * address);
  Effect effect;
  effect.scale(Resource::kIssue, 1 - removed).scale(Resource::kAlu, 1 - 0.7 * address);
  effect.scale(Resource::kLsu, 0.7);
  effect.waiting =
      1 - 0.5 * queued - 0.1 * stalls(facts, {Stall::kLongScoreboard, Stall::kBarrier}, 0.3);
  Finding finding;
  set_gain(facts, effect, &finding);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kInfo;
  finding.cause =
      number(copies) + " asynchronous copies in the hot loop are issued per thread, and " +
      percent(address) + " of its instructions compute addresses" +
      (queued >= kQueued ? "; " + percent(queued) + " of the stalls are on the memory queues"
                         : std::string()) +
      ": bulk copies (TMA) need one thread and no address arithmetic.";
  finding.metrics = {"sass.hot.ldgsts", "sass.hot.address", "sass.hot.instructions"};
  if (queued >= kQueued) {
    finding.metrics.emplace_back(
        "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio");
  }
  finding.sites = line_of(facts, {"sass.hot.ldgsts", "sass.hot.async_copies"});
  finding.prescriptions = {
      {"pipeline",
       "Let one elected thread copy whole boxes with `cp.async.bulk.tensor` (a tensor map encoded "
       "on the host) and wait on an mbarrier; rows beyond the edge are filled with zeros.",
       "bases or pitches are not multiples of 16 B"},
      {"pipeline",
       "Give the copies to a dedicated producer warp and its registers to the consumers "
       "(`setmaxnreg`).",
       "the block has fewer than three warpgroups of work"}};
  return finding;
}

constexpr const char* kMissingTmaNeeds[] = {"sass.hot.ldgsts", "sass.hot.address",
                                            "sass.hot.instructions"};

}  // namespace

extern const Tool kMissingTma;
const Tool kMissingTma{.name = "missing-tma",
                       .summary = "Threads copy in small pieces what bulk copies (TMA) would move.",
                       .target = ToolTarget::kCuda,
                       .needs = kMissingTmaNeeds,
                       .analyse = missing_tma};

}  // namespace kernelpro
