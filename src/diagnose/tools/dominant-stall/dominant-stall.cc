// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnose/account/gains.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kShare = 0.4;  // of the waits (KernelPro; critical above 60 %)
constexpr double kNearRoofline = 0.7;
constexpr double kCritical = 0.6;
constexpr double kIssues = 0.7;  // instructions per cycle: the schedulers have enough to do
constexpr double kBusy = 0.7;
constexpr double kLeastGain = 1.05;
constexpr double kHidden = 0.25;  // of what is lost by issuing: more than the stall loses

struct Reason {
  Stall stall;
  const char* waits_for;
  Prescription first;
  Prescription second;
};

const std::vector<Reason>& reasons() {
  static const std::vector<Reason> all = {
      {Stall::kLongScoreboard,
       "global or local memory",
       {"unroll",
        "Keep more loads in flight: several independent items per thread, with all loads first.",
        "registers would spill"},
       {"pipeline", "Fetch the next tile ahead with asynchronous copies (`cp.async`, TMA).",
        "each value is used once, straight from a register"}},
      {Stall::kShortScoreboard,
       "shared memory, special functions or shuffles",
       {"shared-memory",
        "Keep reused values in registers, and read shared memory 128 bits at a time.",
        "registers would spill"},
       {"algorithm",
        "Move shuffle trees and special functions out of the loop: reduce once at the end, hoist "
        "reciprocals.",
        ""}},
      {Stall::kWait,
       "the fixed latency of the preceding instruction",
       {"unroll", "Work on several independent items or accumulators per thread.",
        "the order of a sum must stay fixed, or registers would spill"},
       {"block-size", "Keep more warps resident.", "occupancy is already high"}},
      {Stall::kMioThrottle,
       "space in the queue of shared-memory and special instructions",
       {"shared-memory",
        "Issue fewer, wider shared-memory accesses; use `ldmatrix` for matrix tiles.", ""},
       {"algorithm", "Move work away from the special-function unit and from shuffles.", ""}},
      {Stall::kLgThrottle,
       "space in the queue of global and local accesses",
       {"vectorize", "Issue fewer, wider global accesses (128 bits).",
        "addresses are not 16-byte aligned"},
       {"registers", "Keep spilled values and indexed arrays out of local memory.",
        "there are none"}},
      {Stall::kMathPipeThrottle,
       "a busy arithmetic pipe",
       {"algorithm",
        "Balance the pipes: use fewer, simpler integer instructions, and replace conversions and "
        "divisions.",
        "the pipe does the task's own arithmetic"},
       {"tensor-cores", "Compute matrix products on the tensor cores.", "there are none"}},
      {Stall::kBranchResolving,
       "branch targets",
       {"divergence", "Unroll short loops and replace short branches with selects.",
        "the bodies are long"},
       {"unroll", "Unroll, so that each branch covers more work.", ""}},
      {Stall::kMembar,
       "memory fences",
       {"synchronization",
        "Use the narrowest scope (`__threadfence_block`, cuda::atomic_ref with acquire and "
        "release), and fence once per block.",
        ""},
       {"algorithm", "Exchange through a second kernel or a cluster instead.", ""}},
      {Stall::kSleeping,
       "the end of a nanosleep",
       {"synchronization", "Wait on an mbarrier, or shorten the back-off.",
        "the warp is a producer with nothing to do"},
       {"algorithm", "Remove the spinning: order the work so that no warp waits.", ""}},
      {Stall::kDrain,
       "stores to drain at exit",
       {"vectorize", "Use wide, contiguous stores.", ""},
       {"grid-size", "Give each block more work, so that the last stores are a smaller part.", ""}},
      {Stall::kDispatchStall,
       "the dispatcher",
       {"unroll",
        "Change the order of the loop's instructions: a different unroll factor is often enough.",
        ""},
       {"registers", "Change the number of registers.", ""}},
      {Stall::kTexThrottle,
       "space in the texture queue",
       {"vectorize", "Use ordinary global loads, fewer and wider.", ""},
       {"algorithm", "Keep texture fetches out of the innermost loop.", ""}},
      {Stall::kGmma,
       "warpgroup matrix results",
       {"pipeline",
        "Keep more matrix instructions in flight: wait for all but the last group "
        "(`wgmma.wait_group 1`), use two consumer warpgroups.",
        "the tensor cores are already busy"},
       {"tile-size", "Use a larger tile per warpgroup.", "registers would spill"}},
  };
  return all;
}

// Where in the code the stall occurs, as far as SASS and its line information show.
FindingSites place(const Facts& facts, Stall reason) {
  if (reason == Stall::kLongScoreboard) {
    return line_of(facts, {"sass.hot.waits_global", "sass.hot.waits_local"});
  }
  if (reason == Stall::kShortScoreboard) {
    return line_of(facts,
                   {"sass.hot.waits_shared", "sass.hot.waits_special", "sass.hot.waits_shuffle"});
  }
  if (reason == Stall::kMembar) return line_of(facts, {"sass.hot.fences"});
  return {};
}

// Microseconds, by samples; nullopt: there are none.
std::optional<double> lost_to(const Facts& facts, Stall stall) {
  const KernelAccount* account = facts.account();
  const Places* places = facts.places();
  if (account == nullptr || places == nullptr || places->basis != Places::Basis::kSampled) {
    return std::nullopt;
  }
  return account->wait(stall);
}

// Whether samples show that others issue, or memory works, while warps wait for that reason: as
// those do whose only work is to load for others.
bool is_hidden(const Facts& facts, Stall stall) {
  const auto lost = lost_to(facts, stall);
  return lost && *lost < kHidden * facts.account()->part(PartKind::kIssue);
}

std::optional<Finding> dominant_stall(const Facts& facts) {
  const KernelModel& model = facts.model();
  if (!model.counted() || model.demand() >= kBusy) return std::nullopt;
  if (facts.maybe("smsp__issue_active.avg.per_cycle_active").value_or(0) >= kIssues) {
    return std::nullopt;
  }
  // Every kernel waits for something; near the roofline that is not a flaw.
  if (facts.roofline().known() && facts.roofline().fraction >= kNearRoofline) return std::nullopt;
  const Reason* worst = nullptr;
  double share = kShare;
  for (const Reason& reason : reasons()) {
    const auto part = model.stall(reason.stall);
    if (!part || *part < share) continue;
    share = *part;
    worst = &reason;
  }
  if (worst == nullptr || is_hidden(facts, worst->stall)) return std::nullopt;
  Effect half, none;
  half.waiting = 1 - 0.5 * share;
  none.waiting = 1 - share;
  Finding finding;
  finding.likely_speedup = model.gain(half).likely;
  // No more than what samples show to be lost to it.
  if (const auto lost = lost_to(facts, worst->stall)) {
    const double most = gain_eliminating(*facts.account(), 0.5 * *lost);
    finding.likely_speedup = std::min(finding.likely_speedup, most);
  }
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = share >= kCritical ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {stall_metric(worst->stall),
                     "smsp__average_warp_latency_per_inst_issued.ratio"};
  finding.cause = percent(share) + " of a warp's stall time (" +
                  number(facts("smsp__average_warp_latency_per_inst_issued.ratio"), 3) +
                  " cycles from one instruction to the next) goes to waiting for " +
                  worst->waits_for + ".";
  finding.sites = place(facts, worst->stall);
  finding.prescriptions = {worst->first, worst->second};
  return finding;
}

constexpr const char* kDominantStallNeeds[] = {"smsp__average_warp_latency_per_inst_issued.ratio"};

}  // namespace

extern const Tool kDominantStall;
const Tool kDominantStall{.name = "dominant-stall",
                          .summary = "One stall reason takes most of the time.",
                          .target = ToolTarget::kCuda,
                          .needs = kDominantStallNeeds,
                          .analyse = dominant_stall,
                          .catch_all = true};

}  // namespace kernelpro
