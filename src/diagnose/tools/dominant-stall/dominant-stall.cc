// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kShare = 0.4;  // of the waits (KernelPro; critical above 60 %)
constexpr double kNearRoofline = 0.7;
constexpr double kCritical = 0.6;
constexpr double kIssues = 0.7;  // instructions per cycle: the schedulers have enough to do
constexpr double kBusy = 0.8;
constexpr double kLeastGain = 1.05;

struct Reason {
  const char* name;
  const char* waits_for;
  Prescription first;
  Prescription second;
};

const std::vector<Reason>& reasons() {
  static const std::vector<Reason> all = {
      {"long_scoreboard",
       "global or local memory",
       {"unroll",
        "Have more loads under way: several independent items per thread, all loads first.",
        "registers would spill"},
       {"pipeline", "Fetch the next tile ahead with asynchronous copies (`cp.async`, TMA).",
        "each value is used once, straight from a register"}},
      {"short_scoreboard",
       "shared memory, special functions or shuffles",
       {"shared-memory",
        "Keep what is read again in registers, and read shared memory in 128-bit "
        "pieces.",
        "registers would spill"},
       {"algorithm",
        "Replace shuffle trees and special functions in the loop: reduce once at the "
        "end, hoist reciprocals.",
        ""}},
      {"wait",
       "the fixed latency of the instruction before",
       {"unroll", "Work on several independent items or accumulators per thread.",
        "the order of a sum must stay fixed, or registers would spill"},
       {"block-size", "Have more warps resident.", "occupancy is high already"}},
      {"mio_throttle",
       "room in the queue of shared-memory and special instructions",
       {"shared-memory",
        "Issue fewer and wider shared-memory accesses, `ldmatrix` for matrix tiles.", ""},
       {"algorithm", "Move work off the special-function unit and shuffles.", ""}},
      {"lg_throttle",
       "room in the queue of global and local accesses",
       {"vectorize", "Issue fewer and wider global accesses (128 bits).",
        "addresses are not 16-byte aligned"},
       {"registers", "Keep spilled values and indexed arrays out of local memory.",
        "there are none"}},
      {"math_pipe_throttle",
       "a busy arithmetic pipe",
       {"algorithm",
        "Mix pipes: move integer work to fewer, simpler instructions, replace "
        "conversions and divisions.",
        "the pipe does the task's own arithmetic"},
       {"tensor-cores", "Let matrix units do the matrix products.", "there are none"}},
      {"branch_resolving",
       "branch targets",
       {"divergence", "Unroll short loops and replace short branches by selection.",
        "bodies are long"},
       {"unroll", "Unroll so that one branch serves more work.", ""}},
      {"membar",
       "memory fences",
       {"synchronization",
        "Use the narrowest scope (`__threadfence_block`, cuda::atomic_ref with "
        "acquire and release) and fence once per block.",
        ""},
       {"algorithm", "Exchange through a second kernel or a cluster instead.", ""}},
      {"sleeping",
       "their own sleep to end",
       {"synchronization", "Wait on an mbarrier or shorten the back-off.",
        "the warp is a producer that has nothing to do"},
       {"algorithm", "Remove the spinning: order the work so that nobody waits.", ""}},
      {"drain",
       "stores at their end",
       {"vectorize", "Store in wide, contiguous pieces.", ""},
       {"grid-size", "Give each block more work, so that the last stores are a smaller part.", ""}},
      {"dispatch_stall",
       "the dispatcher",
       {"unroll", "Change the order of the loop's instructions: another unrolling often does.", ""},
       {"registers", "Change the number of registers.", ""}},
      {"tex_throttle",
       "room in the texture queue",
       {"vectorize", "Load through ordinary global loads, fewer and wider.", ""},
       {"algorithm", "Keep texture fetches out of the innermost loop.", ""}},
      {"gmma",
       "warpgroup matrix results",
       {"pipeline",
        "Keep more matrix instructions under way: wait for all but the last group "
        "(`wgmma.wait_group 1`), two consumer warpgroups.",
        "the matrix units are busy already"},
       {"tile-size", "Use a larger tile per warpgroup.", "registers would spill"}},
  };
  return all;
}

// Where in the code the stall occurs, as far as SASS and its line information show.
std::string place(const Facts& facts, std::string_view reason) {
  if (reason == "long_scoreboard") {
    return line_of(facts, {"sass.hot.waits_global", "sass.hot.waits_local"});
  }
  if (reason == "short_scoreboard") {
    return line_of(facts,
                   {"sass.hot.waits_shared", "sass.hot.waits_special", "sass.hot.waits_shuffle"});
  }
  if (reason == "membar") return line_of(facts, {"sass.hot.fences"});
  return "";
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
    const auto part = model.stall(reason.name);
    if (!part || *part < share) continue;
    share = *part;
    worst = &reason;
  }
  if (worst == nullptr) return std::nullopt;
  Effect half, none;
  half.waiting = 1 - 0.5 * share;
  none.waiting = 1 - share;
  Finding finding;
  finding.likely_speedup = model.gain(half).likely;
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = share >= kCritical ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {
      "smsp__average_warps_issue_stalled_" + std::string(worst->name) + "_per_issue_active.ratio",
      "smsp__average_warp_latency_per_inst_issued.ratio"};
  finding.cause = percent(share) + " of a warp's waiting (" +
                  number(facts("smsp__average_warp_latency_per_inst_issued.ratio"), 3) +
                  " cycles from one instruction to the next) is for " + worst->waits_for + ".";
  finding.where = place(facts, worst->name);
  finding.prescriptions = {worst->first, worst->second};
  return finding;
}

constexpr const char* kDominantStallNeeds[] = {"smsp__average_warp_latency_per_inst_issued.ratio"};

}  // namespace

extern const Tool kDominantStall;
const Tool kDominantStall{.name = "dominant-stall",
                          .summary = "One reason takes most of the waiting.",
                          .target = ToolTarget::kCuda,
                          .needs = kDominantStallNeeds,
                          .analyse = dominant_stall,
                          .catch_all = true};

}  // namespace kernelpro
