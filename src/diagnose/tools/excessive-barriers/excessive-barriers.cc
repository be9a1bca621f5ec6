// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kShare = 0.25;     // of the waits, where they were counted
constexpr double kExposed = 0.1;    // of the time, where barriers follow each other closely
constexpr double kDense = 3;        // barriers of the hot loop
constexpr double kFewBetween = 64;  // instructions between barriers
constexpr double kBusy = 0.85;
constexpr double kManySteps = 4;   // barriers of the hot loop
constexpr double kShortStep = 16;  // mean instructions between them
constexpr double kGone = 0.7;      // of the waits
constexpr double kLeastGain = 1.05;

std::vector<Prescription> advice(const Facts& facts) {
  std::vector<Prescription> list = {
      {"synchronization",
       "Exchange within warps by shuffles and synchronize once: reduce within each warp, then one "
       "barrier and one warp for the rest.",
       "the data does not fit a warp's registers"},
      {"synchronization",
       "Use double buffering, so that one barrier per iteration is enough instead of two.",
       "shared memory would limit the resident blocks"},
      {"synchronization",
       "Do more work between barriers: use a deeper tile along the summed dimension.", ""}};
  if (facts.maybe("launch__block_size").value_or(0) >= 512) {
    list.push_back({"block-size", "Use smaller blocks: fewer warps wait for the slowest.",
                    "the block's tile needs all of them"});
  }
  return list;
}

double shared_accesses(const Facts& facts) {
  return facts.maybe("sass.hot.shared_loads").value_or(0) +
         facts.maybe("sass.hot.shared_stores").value_or(0);
}

// The share of hot-loop instructions that exchange data through shared memory: two per access, and
// the barriers.
double exchange_part(const Facts& facts, double barriers) {
  const double all = facts.maybe("sass.hot.instructions").value_or(0);
  if (all <= 0) return 0;
  return std::min(0.9, (2 * shared_accesses(facts) + barriers) / all);
}

// The shared fraction of the hot loop's accesses: those predicated off for all lanes also use the
// pipe but do not count as wavefronts.
double shared_instructions(const Facts& facts) {
  const double shared = shared_accesses(facts);
  const double global = facts.maybe("sass.hot.global_loads").value_or(0) +
                        facts.maybe("sass.hot.global_stores").value_or(0);
  return shared > 0 ? shared / (shared + global) : 0;
}

// A loop of many short steps, or one that is a single such step: a tree over shared memory.
bool in_steps(const Facts& facts, double barriers) {
  const double all = facts.maybe("sass.hot.instructions").value_or(1e9);
  const bool alone = facts.maybe("sass.hot.loops").value_or(0) > 0 &&
                     facts.maybe("sass.hot.global_loads").value_or(0) == 0 &&
                     facts.maybe("sass.hot.global_stores").value_or(0) == 0;
  return (barriers >= kManySteps || alone) && all / barriers < kShortStep &&
         facts.maybe("sass.hot.shared_loads").value_or(0) >= barriers / 2;
}

// What the kernel's account has for waits at barriers, beyond the floor: of the kernel's time, if
// samples show it.
std::optional<double> beyond_floor(const Facts& facts) {
  const Places* places = facts.places();
  const KernelAccount* account = facts.account();
  if (places == nullptr || places->basis != Places::Basis::kSampled || account == nullptr ||
      account->us <= 0) {
    return std::nullopt;
  }
  return account->wait(Stall::kBarrier) / account->us;
}

std::optional<Finding> excessive_barriers(const Facts& facts) {
  const double barriers = facts("sass.hot.barriers");
  const double between = facts.maybe("sass.hot.between_barriers").value_or(1e9);
  const double block = facts.maybe("launch__block_size").value_or(1024);
  if (barriers < 1 || block <= 32) return std::nullopt;
  // Few barriers at which warps wait long: some have more to do than others (unbalanced-roles).
  if (waits_for_others(facts)) return std::nullopt;
  const KernelModel& model = facts.model();
  const auto share = model.stall(Stall::kBarrier);
  const bool steps = share && in_steps(facts, barriers);
  Effect effect, none;
  if (steps) {
    // A step's barrier, shared accesses and their waits all serve the exchange.
    const double waits =
        stalls(facts, {Stall::kBarrier, Stall::kShortScoreboard, Stall::kMioThrottle}, 0);
    const double shared = std::max(shared_part(facts), shared_instructions(facts));
    const double work = exchange_part(facts, barriers);
    effect.scale(Resource::kL1, 1 - 0.85 * shared);
    effect.scale(Resource::kLsu, 1 - 0.85 * shared).scale(Resource::kIssue, 1 - 0.7 * work);
    effect.scale(Resource::kAlu, 1 - 0.7 * work).scale(Resource::kFma, 1 - 0.7 * work);
    effect.waiting = 1 - 0.85 * waits;
    none.scale(Resource::kL1, 1 - shared).scale(Resource::kLsu, 1 - shared);
    none.scale(Resource::kIssue, 1 - work).scale(Resource::kAlu, 1 - work);
    none.scale(Resource::kFma, 1 - work);
    none.waiting = 0;
  } else if (share) {
    const double waited = exposed(facts, {Stall::kBarrier}).value_or(0);
    const bool dense = barriers >= kDense && between < kFewBetween && waited >= kExposed;
    if ((*share < kShare && !dense) || model.demand() >= kBusy) return std::nullopt;
    // After each of many barriers all warps wait for the same latency at once.
    const double together = dense ? 0.5 * stalls(facts, {Stall::kShortScoreboard}, 0) : 0;
    effect.waiting = 1 - std::min(1.0, kGone * *share + together);
    none.waiting = std::max(0.0, 1 - *share - 2 * together);
  } else {
    const Roofline& roof = facts.roofline();
    if (barriers < 2 || between >= kFewBetween || !roof.known() || roof.fraction >= 0.5) {
      return std::nullopt;
    }
    effect.waiting = 0.5;
    none.waiting = 0.2;
  }
  Finding finding;
  finding.likely_speedup = model.gain(effect).likely;
  if (const auto part = beyond_floor(facts); part && !steps) {
    finding.likely_speedup = std::min(finding.likely_speedup, speedup_without(kGone * *part));
  }
  finding.upper_speedup = std::max(finding.likely_speedup, model.gain(none).upper);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = share && *share >= 0.5 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.barriers"};
  finding.cause = "The hot loop has " + number(barriers) + " block barriers";
  if (between < 1e9) {
    finding.cause += ", as few as " + number(between) +
                     (between == 1 ? " instruction apart" : " instructions apart");
    finding.metrics.emplace_back("sass.hot.between_barriers");
  }
  finding.cause += " (" + number(block) + " threads wait at each)";
  if (share) {
    finding.cause += "; " + percent(*share) + " of the warps' stall time is spent there";
    finding.metrics.emplace_back(
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio");
  }
  finding.cause += ".";
  finding.sites = line_of(facts, {"sass.hot.barriers", "sass.barriers"});
  finding.prescriptions = advice(facts);
  return finding;
}

constexpr const char* kExcessiveBarriersNeeds[] = {"sass.hot.barriers"};

}  // namespace

extern const Tool kExcessiveBarriers;
const Tool kExcessiveBarriers{.name = "excessive-barriers",
                              .summary = "Warps wait for each other at block barriers.",
                              .target = ToolTarget::kCuda,
                              .needs = kExcessiveBarriersNeeds,
                              .analyse = excessive_barriers};

}  // namespace kernelpro
