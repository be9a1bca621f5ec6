// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/account/gains.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLeastRatio = 1.5;  // chain over the resident warps' issue time
constexpr double kLeastWaits = 0.2;
constexpr double kBusy = 0.8;
constexpr double kLeastGain = 1.1;
constexpr double kSplit = 4;           // independent chains after a typical rewrite
constexpr double kSplitOfWarps = 2.5;  // what they come to, where samples show the waits (H200)
// With samples: of the time, in which no warp can issue; of an iteration's cycles, in the chain.
constexpr double kLeastFixed = 0.3;
constexpr double kOfIteration = 0.6;
constexpr double kBusyWithSamples = 0.65;
constexpr double kMost = 1.5;  // the rewrite often issues fewer instructions too

// Never "2.63e+03".
std::string whole(double cycles) { return std::to_string(std::lround(cycles)); }

void advise(const Facts& facts, Finding* out) {
  Finding& finding = *out;
  finding.sites = joined({line_of(facts, {"sass.loop.carried_cycles", "sass.hot.ffma"}),
                          loop_of(facts, {"sass.loop.carried_cycles", "sass.hot.ffma"}),
                          depth_of(facts, {"chain", "accum", "parallel"})});
  finding.prescriptions = {
      {"unroll",
       "Break the chain: four or more independent accumulators per thread, added at the end (a sum "
       "in another order), or several independent items per thread.",
       "the result must be bit-identical to this order"},
      {"block-size", "Keep more warps resident, so that others can issue meanwhile.",
       "occupancy is already high"},
      {"algorithm",
       "Shorten the chain: use a tree or scan instead of a running value, and move the slow "
       "operation out of the recurrence.",
       ""}};
}

// Samples show the waits for fixed latencies, which are those of one chain: a warp with several
// chains is as good as several warps (GPA's occupancy estimator).
std::optional<Finding> sampled_chain(const Facts& facts, double warps) {
  const KernelAccount* account = facts.account();
  const Places* places = facts.places();
  if (account == nullptr || places == nullptr || places->basis != Places::Basis::kSampled) {
    return std::nullopt;
  }
  const double fixed = exposed(facts, {Stall::kWait, Stall::kShortScoreboard}).value_or(0);
  const double alone = facts.maybe("sass.loop.alone_cycles").value_or(0);
  const double carried = facts("sass.loop.carried_cycles");
  if (fixed < kLeastFixed || alone <= 0 || carried < kOfIteration * alone) return std::nullopt;
  if (facts.model().demand() >= kBusyWithSamples || account->issuing >= kBusyWithSamples) {
    return std::nullopt;
  }
  Finding finding;
  finding.likely_speedup = gain_of_warps(*account, warps, kSplitOfWarps * warps);
  finding.upper_speedup = kMost * gain_of_warps(*account, warps, kSplit * warps);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = fixed >= 0.5 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.loop.carried_cycles", "sass.loop.alone_cycles", "samples.exposed"};
  finding.cause = "In " + percent(fixed) + " of the time a scheduler's " + number(warps, 2) +
                  " warps all wait for a fixed latency: the hot loop is a chain of " +
                  number(facts.maybe("sass.loop.carried_length").value_or(0)) +
                  " dependent instructions, " + whole(carried) + " of the " + whole(alone) +
                  " cycles of an iteration.";
  advise(facts, &finding);
  return finding;
}

std::optional<Finding> dependent_chain(const Facts& facts) {
  const double carried = facts("sass.loop.carried_cycles");
  const double issue = std::max(facts("sass.loop.issue_cycles"), 1.0);
  const double length = facts.maybe("sass.loop.carried_length").value_or(0);
  // A chain of one or two instructions is a loop counter or an address.
  if (carried < 8 || length < 1) return std::nullopt;
  const auto resident = resident_warps(facts);
  const double warps = std::max(1.0, resident ? *resident / 4 : 8);
  const double ratio = carried / (issue * warps);
  if (const auto sampled = sampled_chain(facts, warps)) return sampled;
  if (ratio < kLeastRatio) return std::nullopt;
  const KernelModel& model = facts.model();
  // Memory waits within the chain need more loads in flight, not more accumulators.
  const double waits =
      stalls(facts, {Stall::kWait, Stall::kShortScoreboard, Stall::kMathPipeThrottle}, 0.6);
  if (waits < kLeastWaits || stalls(facts, {Stall::kLongScoreboard}, 0) > waits)
    return std::nullopt;
  if (model.counted() ? model.demand() >= kBusy : facts.roofline().fraction >= 0.6) {
    return std::nullopt;
  }
  Effect split, gone;
  split.waiting = 1 - waits * (1 - 1 / std::min(kSplit, ratio));
  gone.waiting = 1 - waits * (1 - 1 / ratio);
  Finding finding;
  finding.likely_speedup = model.gain(split).likely;
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(gone).upper);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = ratio >= 4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.loop.carried_cycles", "sass.loop.issue_cycles"};
  if (model.counted()) {
    finding.metrics.emplace_back("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio");
  }
  finding.cause = "Each iteration of the hot loop waits for the previous one: a chain of " +
                  number(length) + " dependent instructions takes " + whole(carried) +
                  " cycles, while issuing the iteration takes only " + whole(issue) + ", and " +
                  number(warps, 2) + " warps per scheduler cannot fill the gap.";
  advise(facts, &finding);
  return finding;
}

constexpr const char* kDependentChainNeeds[] = {"sass.loop.carried_cycles",
                                                "sass.loop.issue_cycles"};

}  // namespace

extern const Tool kDependentChain;
const Tool kDependentChain{.name = "dependent-chain",
                           .summary = "Each iteration waits for the previous one.",
                           .target = ToolTarget::kCuda,
                           .bounds = kNotMemoryBound,
                           .needs = kDependentChainNeeds,
                           .analyse = dependent_chain};

}  // namespace kernelpro
