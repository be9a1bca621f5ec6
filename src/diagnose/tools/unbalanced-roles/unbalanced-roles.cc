// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "diagnose/tools/causes.h"

namespace kernelpro {

namespace {

constexpr double kLeastGain = 1.05;
constexpr double kSlack = 1.2;
constexpr double kPowerWon = 0.57;   // of what roles could win: what repairs won
constexpr double kLeastBusy = 0.05;  // of a role's time
constexpr double kGrave = 1.3;
constexpr double kEvened = 0.9;      // of the waits at barriers
constexpr double kMostWaited = 0.9;  // ... if all of them could go
constexpr std::size_t kMostSites = 3, kMostWaits = 2;

// The pace-setter's largest wait goes, until another role is as busy.
double without_wait(const std::vector<WarpRole>& roles, const WarpRole& pace) {
  const double busy = 1 - pace.awaits;
  double next = kLeastBusy;
  for (const WarpRole& role : roles) {
    if (&role != &pace) next = std::max(next, 1 - role.awaits);
  }
  const double largest = pace.waits.empty() ? 0 : pace.waits.front().share;
  return std::max(1.0, busy / std::max(busy - largest, std::min(busy, next)));
}

// All warps are as busy as they are on average.
double balanced(const std::vector<WarpRole>& roles, const WarpRole& pace) {
  double work = 0, warps = 0;
  for (const WarpRole& role : roles) {
    work += role.share * (1 - role.awaits);
    warps += role.share;
  }
  return work > 0 ? std::max(1.0, (1 - pace.awaits) * warps / work) : 1;
}

// ", those at kernel.cu:20-40 80 % of theirs"
std::string others_wait(const std::vector<WarpRole>& roles, const WarpRole& pace) {
  std::string text;
  for (const WarpRole& role : roles) {
    if (&role == &pace) continue;
    text += ", those at " + role_words(role) + " " + percent(role.awaits) + " of theirs";
  }
  return text;
}

bool is_barrier(std::string_view instruction) {
  return instruction.find("BAR.SYNC") != std::string_view::npos;
}

// Warps of one loop that part at a branch and meet at a barrier: whose part is the longer one is
// not told, but that the others wait is.
std::optional<Finding> meeting_at_barriers(const Facts& facts) {
  if (!waits_for_others(facts)) return std::nullopt;
  const double waited = exposed(facts, {Stall::kBarrier}).value_or(0);
  Finding finding;
  finding.likely_speedup = speedup_without(kEvened * waited);
  finding.upper_speedup = kSlack * speedup_without(std::min(kMostWaited, waited));
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = finding.likely_speedup >= kGrave ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {stall_metric(Stall::kBarrier)};
  const double share = facts.model().stall(Stall::kBarrier).value_or(0);
  finding.cause =
      percent(share) +
      " of the warps' stall time is waiting at barriers, though these are rare: some of a "
      "block's warps have more to do between them than others, or do alone what all "
      "wait for.";
  finding.prescriptions = {
      {"work-distribution",
       "Give the longer part more warps, or a part of its work to those that wait.",
       "one part needs what only its warps hold"},
      {"pipeline",
       "Let the parts run ahead of each other: two or more buffers, and an mbarrier (or a named "
       "barrier) for each in place of one barrier for all.",
       "shared memory has no room for another buffer"}};
  finding.sites = joined({waits_at(facts, is_barrier), depth_of(facts, {"warps"})});
  return finding;
}

std::optional<Finding> unbalanced_roles(const Facts& facts) {
  const Places* places = facts.places();
  if (places == nullptr) return std::nullopt;
  const std::vector<WarpRole>& roles = places->roles;
  const WarpRole* pace = pace_setter(roles);
  if (pace == nullptr) return meeting_at_barriers(facts);
  const double shorter = without_wait(roles, *pace), shared = balanced(roles, *pace);
  Finding finding;
  finding.likely_speedup = std::pow(std::max(shorter, shared), kPowerWon);
  finding.upper_speedup = kSlack * std::max(shorter, shared);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = finding.likely_speedup >= kGrave ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"samples.taken"};
  finding.cause = "The warps at " + role_words(*pace) + " set the pace: they wait for the others " +
                  percent(pace->awaits) + " of their time" + others_wait(roles, *pace) + ". They";
  for (std::size_t i = 0; i < std::min(kMostWaits, pace->waits.size()); ++i) {
    finding.cause += (i == 0 ? " " : " and ") + role_wait_words(pace->waits[i]);
  }
  finding.cause += (pace->waits.empty() ? " issue, or could, " : "; they issue, or could, ") +
                   percent(pace->ready) + ".";
  finding.prescriptions = {
      {"work-distribution",
       "Move a step of these warps' work to those that wait, or give it warps of its own; with "
       "`setmaxnreg`, registers go where the work goes.",
       "the step's operands are in these warps' registers and cost more to hand over"},
      {"algorithm",
       "Shorten what these warps do and wait for at the lines named: what is saved there is saved "
       "in the call, and nothing that the others do is.",
       "another role would set the pace at once"}};
  std::vector<SourceLine> lines;
  for (const RoleWait& wait : pace->waits) lines.push_back(wait.line);
  finding.sites = joined(
      {sites_at(lines, kMostSites), depth_of(facts, {"warp", "producer", "consumer", "role"})});
  return finding;
}

constexpr const char* kUnbalancedRolesOneOf[] = {
    "samples.taken", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"};

}  // namespace

extern const Tool kUnbalancedRoles;
const Tool kUnbalancedRoles{.name = "unbalanced-roles",
                            .summary = "Warps of one role hold up those of the others.",
                            .target = ToolTarget::kCuda,
                            .analyse = unbalanced_roles,
                            .one_of = kUnbalancedRolesOneOf};

}  // namespace kernelpro
