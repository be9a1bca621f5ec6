// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kShare = 0.15;      // of the waits
constexpr double kMisses = 0.03;     // of the requests
constexpr double kLargeLoop = 96e3;  // bytes; used without counters
constexpr double kGone = 0.7;        // of the waits; others come to light (pairs on an H200)
constexpr double kLeastGain = 1.05;
constexpr double kShortNs = 20e3;  // shorter kernels always start cold

std::optional<Finding> instruction_cache(const Facts& facts) {
  const double code = facts("sass.hot.code_bytes");
  const KernelModel& model = facts.model();
  const auto share = model.stall(Stall::kNoInstruction);
  const auto requests = facts.maybe("sm__icc_requests.sum");
  const auto misses = facts.maybe("sm__icc_requests_lookup_miss.sum");
  Effect effect, none;
  if (share) {
    if (*share < kShare || facts.maybe("gpu__time_duration.sum").value_or(1e9) < kShortNs) {
      return std::nullopt;
    }
    if (requests && misses && *requests > 0 && *misses / *requests < kMisses) return std::nullopt;
    effect.waiting = 1 - kGone * *share;
    none.waiting = 1 - *share;
  } else {
    if (code < kLargeLoop || !facts.roofline().known() || facts.roofline().fraction >= 0.6) {
      return std::nullopt;
    }
    effect.waiting = 0.8;
    none.waiting = 0.4;
  }
  Finding finding;
  finding.likely_speedup = model.gain(effect).likely;
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = share && *share >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.code_bytes"};
  finding.cause = "The hot code is " + human_bytes(code) + " long";
  if (requests && misses && *requests > 0) {
    finding.cause +=
        "; " + percent(*misses / *requests) + " of the instruction-cache requests miss";
    finding.metrics.emplace_back("sm__icc_requests_lookup_miss.sum");
  }
  if (share) {
    finding.cause +=
        "; " + percent(*share) + " of the warps' stall time is waiting for instructions";
    finding.metrics.emplace_back(
        "smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio");
  }
  finding.cause += ".";
  finding.sites = joined(
      {site_of(facts, {SiteKind::kUnroll}), loop_of(facts, {"sass.hot.ffma", "sass.hot.integer"})});
  finding.prescriptions = {
      {"unroll", "Unroll less (`#pragma unroll 4`), so that the loop fits the instruction cache.",
       "registers are indexed by the unrolled counter"},
      {"algorithm",
       "Move rare paths out of line (`__noinline__`), and build one kernel per configuration "
       "instead of branching over all.",
       ""}};
  return finding;
}

constexpr const char* kInstructionCacheNeeds[] = {"sass.hot.code_bytes"};

}  // namespace

extern const Tool kInstructionCache;
const Tool kInstructionCache{.name = "instruction-cache",
                             .summary = "The hot code does not fit the instruction cache.",
                             .target = ToolTarget::kCuda,
                             .bounds = kNotMemoryBound,
                             .needs = kInstructionCacheNeeds,
                             .analyse = instruction_cache};

}  // namespace kernelpro
