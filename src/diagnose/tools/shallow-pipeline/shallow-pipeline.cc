// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kShare = 0.3;
constexpr double kBusy = 0.75;
constexpr double kLeastGain = 1.05;
constexpr double kRingBusy = 0.85;
constexpr double kLateBusy = 0.75;  // memory, where a ring with room enough is asked too late
constexpr double kHidden = 0.9;     // of the waits, by copies that start earlier
constexpr double kRings = 2;        // a ring needs this many times the bytes in flight
constexpr double kSlack = 1.2;

bool is_wait_for_copies(std::string_view instruction) {
  return instruction.find("DEPBAR") != std::string_view::npos ||
         instruction.find("SYNCS.PHASECHK") != std::string_view::npos ||
         instruction.find("TRYWAIT") != std::string_view::npos;
}

bool is_copy(std::string_view instruction) {
  for (const std::string_view name : {"LDGSTS", "LDGDEPBAR", "UBLKCP", "UTMALDG"}) {
    if (instruction.find(name) != std::string_view::npos) return true;
  }
  return false;
}

FindingSites places_of_ring(const Facts& facts) {
  return joined({waits_at(facts, is_wait_for_copies), loop_of(facts, {"sass.hot.async_copies"}),
                 depth_of(facts, {"stage", "depth", "buffers", "slots", "ring", "ahead", "flight",
                                  "prefetch", "pipeline"})});
}

// Shared memory of the resident blocks: no more can be under way by asynchronous copies.
std::optional<double> ring_bytes(const Facts& facts) {
  const auto warps = resident_warps(facts);
  const auto block = facts.maybe("launch__block_size");
  const double shared = facts.maybe("launch__shared_mem_per_block_dynamic").value_or(0) +
                        facts.maybe("launch__shared_mem_per_block_static").value_or(0);
  if (!warps || !block || *block <= 0 || shared <= 0) return std::nullopt;
  return shared * std::max(1.0, *warps / std::ceil(*block / 32));
}

// Without samples. Warps that wait at a barrier wait for others, and no more of that is for copies
// than those wait for them.
double of_copies(const Facts& facts) {
  const double own = stalls(facts, {Stall::kLongScoreboard}, 0);
  return 0.7 * (own + std::min(own, stalls(facts, {Stall::kBarrier}, 0)));
}

// Copies from device memory into a ring that is too small, or that is drained at each turn.
std::optional<Finding> of_memory(const Facts& facts) {
  const KernelModel& model = facts.model();
  const auto needed = needed_in_flight(facts);
  const auto ring = ring_bytes(facts);
  if (!model.counted() || !needed || !ring) return std::nullopt;
  if (model.demand() >= kRingBusy) return std::nullopt;
  const Places* places = facts.places();
  const bool sampled = places != nullptr && places->basis == Places::Basis::kSampled;
  double waits = sampled ? exposed_by(facts, is_copy) : of_copies(facts);
  // Without loads there is nothing else to wait for.
  if (sampled && facts.maybe("sass.hot.global_loads").value_or(1) <= 0) {
    waits = std::max(waits, exposed(facts, {Stall::kLongScoreboard}).value_or(0));
  }
  if (waits < kShare) return std::nullopt;
  const bool groups = facts.maybe("sass.ldgsts").value_or(0) > 0 &&
                      facts.maybe("sass.bulk_copies").value_or(0) <= 0;
  const bool drained = groups && facts.maybe("sass.hot.async_copies").value_or(0) > 0 &&
                       facts.maybe("sass.hot.async_groups").value_or(0) < 1;
  // Part of the ring is being read.
  const bool small = *ring < kRings * *needed;
  // Where one role fills the ring for another, unbalanced-roles says which one is late.
  const bool late = sampled && places->roles.empty() && model.demand(Resource::kDram) < kLateBusy;
  if (!drained && !small && !late) return std::nullopt;
  Finding finding;
  const double most = 1 / std::max(0.05, model.demand());
  finding.likely_speedup = std::min(most, speedup_without(kHidden * waits));
  finding.upper_speedup =
      std::max(finding.likely_speedup, std::min(most * kSlack, speedup_without(waits) * kSlack));
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = waits >= 0.5 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.ldgsts", "sass.bulk_copies", "launch__shared_mem_per_block_dynamic",
                     "ceiling.copy_bandwidth"};
  finding.cause = "In " + percent(waits) + " of the time all warps wait for asynchronous copies: ";
  if (drained) {
    finding.cause +=
        "the hot loop waits until no group of copies is left under way, so that at "
        "each turn a whole latency passes.";
    finding.prescriptions = {
        {"pipeline",
         "Leave groups under way: `cp.async.wait_group` (`__pipeline_wait_prior`) with the number "
         "of stages less two, or consume a tile that was asked for several turns before.",
         "the next tile depends on this one"}};
  } else if (!small) {
    finding.cause += "the ring has room for " + human_bytes(*ring) +
                     " on an SM, and the measured bandwidth needs about " + human_bytes(*needed) +
                     " under way, but device memory is busy " +
                     percent(model.busy(Resource::kDram).value_or(0)) +
                     " of the time only: tiles are asked for too late, not too few at a time.";
    finding.prescriptions = {
        {"pipeline",
         "Ask for a tile as soon as its stage is free: stages less one tiles ahead of the one that "
         "is read, and before the loop for the first ones.",
         "a copy's address depends on the tile before"}};
  } else {
    finding.cause += "at most " + human_bytes(*ring) +
                     " are under way on an SM, where the measured " + "bandwidth needs about " +
                     human_bytes(*needed) + " beside what is being read.";
    finding.prescriptions = {
        {"pipeline",
         "Use more or larger stages, until the ring holds at least two to three times the bytes "
         "that the bandwidth needs in flight.",
         "shared memory has no space for another tile"}};
  }
  finding.sites = places_of_ring(facts);
  return finding;
}

// By samples, warps of several roles hardly ever wait for each other's tiles.
bool nobody_waits(const Facts& facts) {
  const Places* places = facts.places();
  if (places == nullptr || places->roles.empty()) return false;
  return std::ranges::all_of(places->roles,
                             [](const WarpRole& role) { return role.awaits < kShare; });
}

std::optional<Finding> of_products(const Facts& facts, double warpgroup) {
  const KernelModel& model = facts.model();
  if (!model.stall(Stall::kBarrier) || model.demand() >= kBusy) return std::nullopt;
  // Where samples tell a product's end from a tile's arrival, only the latter is the ring's matter.
  const Places* const places = facts.places();
  const bool sampled = places != nullptr && places->basis == Places::Basis::kSampled;
  const double share =
      stalls(facts, {Stall::kBarrier, Stall::kLongScoreboard, Stall::kSleeping}, 0) +
      (sampled ? 0 : stalls(facts, {Stall::kGmma}, 0));
  if (share < kShare || nobody_waits(facts)) return std::nullopt;
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
  finding.cause = "The tensor cores are busy for " +
                  percent(model.busy(Resource::kTensor).value_or(0)) + " of the time; " +
                  percent(share) + " of the warps' stall time is waiting for the next tile (" +
                  (sampled ? "barriers, copies" : "barriers, copies, matrix results") + ").";
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
  finding.sites = places_of_ring(facts);
  return finding;
}

std::optional<Finding> shallow_pipeline(const Facts& facts) {
  // Without asynchronous copies, leave it to synchronous-staging.
  if (facts.maybe("sass.ldgsts").value_or(0) + facts.maybe("sass.bulk_copies").value_or(0) <= 0) {
    return std::nullopt;
  }
  const double warpgroup = facts("sass.hgmma"), warp = facts("sass.hmma");
  if (warpgroup + warp > 0 && facts.roofline().theory != Bound::kMemory) {
    return of_products(facts, warpgroup);
  }
  return of_memory(facts);
}

constexpr const char* kShallowPipelineNeeds[] = {"sass.hmma", "sass.hgmma"};

}  // namespace

extern const Tool kShallowPipeline;
const Tool kShallowPipeline{.name = "shallow-pipeline",
                            .summary = "Tiles arrive too late: too few are under way.",
                            .target = ToolTarget::kCuda,
                            .needs = kShallowPipelineNeeds,
                            .analyse = shallow_pipeline};

}  // namespace kernelpro
