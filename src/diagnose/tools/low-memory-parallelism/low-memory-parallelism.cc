// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kEnough = 0.8;  // of the bytes that must be in flight
constexpr double kLeastWaits = 0.35;
constexpr double kMemoryBusy = 0.85;
constexpr double kFewWarps = 24;  // per multiprocessor
constexpr double kLeastGain = 1.1;
constexpr double kSure = 1.15;
constexpr double kFewLoads = 2;  // in a hot loop, beside bulk copies elsewhere

std::vector<Prescription> advice(bool few_warps, bool narrow, const Facts& facts) {
  std::vector<Prescription> list = {
      {"unroll",
       "Load several independent items per thread before the first use: unroll the loop 4 to 8 "
       "times with all loads first (`#pragma unroll`, `__restrict__`, `const`), or prefetch the "
       "next iteration's values.",
       "each address depends on the value loaded before, or registers would spill"}};
  if (narrow) {
    list.push_back(
        {"vectorize", "Load 128 bits at a time (`float4`).", "addresses are not 16-byte aligned"});
  }
  const Prescription warps{"block-size",
                           "Keep more warps resident: larger or more blocks per SM, less shared "
                           "memory or fewer registers per block.",
                           "the tile needs these resources"};
  list.insert(few_warps ? list.begin() + 1 : list.end(), warps);
  if (facts.maybe("sass.hot.shared_loads").value_or(0) > 0) {
    list.push_back({"pipeline",
                    "Prefetch with `cp.async` or TMA into several shared-memory buffers: bytes in "
                    "flight then need no registers.",
                    "shared memory would limit the resident blocks"});
  }
  return list;
}

// Loads may not pass the stores before them, because the pointers may overlap.
bool stores_between(const Facts& facts) {
  return facts.maybe("sass.hot.global_stores").value_or(0) > 0;
}

std::optional<Finding> low_memory_parallelism(const Facts& facts) {
  const auto have = in_flight(facts);
  const auto need = needed_in_flight(facts);
  if (!have || !need || *have >= kEnough * *need) return std::nullopt;
  // SASS does not show how many bytes bulk copies have in flight. A few loads in the hot loop may
  // stand beside copies that other warps start.
  const double copies = facts.maybe("sass.bulk_copies").value_or(0);
  const double beside = facts.maybe("sass.hot.global_loads").value_or(0);
  if (facts.maybe("sass.hot.bulk_copies").value_or(0) > 0 || (copies > 0 && beside <= kFewLoads)) {
    return std::nullopt;
  }
  const Roofline& roof = facts.roofline();
  const KernelModel& model = facts.model();
  // Arithmetic-bound tasks need reuse before bandwidth; wasted sectors come first.
  if (roof.theory == Bound::kCompute || worst_excess(facts) >= 2) return std::nullopt;
  if (model.counted()) {
    if (model.demand() >= kMemoryBusy) return std::nullopt;
  } else if (!roof.known() || roof.fraction >= 0.7 || roof.bound == Bound::kLaunch) {
    return std::nullopt;
  }
  // Narrow or adjacent loads in many warps: they need width (scalar-loads).
  const double loads = facts.maybe("sass.hot.global_loads").value_or(0);
  const double narrow = facts.maybe("sass.hot.global_loads_narrow").value_or(0) +
                        facts.maybe("sass.hot.global_loads_mergeable").value_or(0);
  if (loads > 0 && narrow >= 0.5 * loads && *resident_warps(facts) >= kFewWarps) {
    return std::nullopt;
  }
  // Each address comes from the previous load: only more warps help (occupancy, dependent-chain).
  if (chained(facts)) return std::nullopt;
  const double waits = stalls(facts, {Stall::kLongScoreboard}, 0.6);
  if (waits < kLeastWaits) return std::nullopt;

  const double filled = *have / *need;
  Effect effect;
  // Time per byte is latency over bytes in flight (Little's law), up to the bandwidth.
  effect.waiting = 1 - waits * (1 - std::clamp(filled / kEnough, 0.15, 1.0));
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.upper_speedup =
      std::max(finding.likely_speedup, std::min(finding.upper_speedup, 1.5 / filled));
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  // The source shows why the compiler does not bring the loads together.
  if (stores_between(facts) && has_site(facts, SiteKind::kPointers)) {
    finding.likely_speedup = std::min(finding.upper_speedup, kSure * finding.likely_speedup);
  }
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  const double bytes = facts("sass.hot.global_bytes_in_flight");
  const double warps = *resident_warps(facts);
  finding.severity = filled < 0.3 ? Severity::kCritical : Severity::kWarning;
  finding.cause = "Each thread has " + number(bytes) + " B of loads in flight and " +
                  number(warps, 3) + " warps are resident: " + human_bytes(*have) +
                  " in flight per SM, where the measured bandwidth needs about " +
                  human_bytes(*need) + ".";
  finding.metrics = {"sass.hot.global_bytes_in_flight"};
  finding.metrics.emplace_back(facts.maybe("smsp__warps_active.avg.per_cycle_active")
                                   ? "smsp__warps_active.avg.per_cycle_active"
                                   : "launch__waves_per_multiprocessor");
  if (model.counted()) {
    finding.metrics.emplace_back(
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio");
  }
  finding.sites =
      joined({line_of(facts, {"sass.hot.global_loads_in_flight", "sass.hot.global_loads"}),
              stores_between(facts) ? site_of(facts, {SiteKind::kPointers}) : FindingSites{}});
  const double wide = facts.maybe("sass.hot.global_loads_128").value_or(0);
  finding.prescriptions = advice(
      warps < kFewWarps, wide < 0.5 * facts.maybe("sass.hot.global_loads").value_or(0), facts);
  return finding;
}

constexpr const char* kLowMemoryParallelismNeeds[] = {
    "sass.hot.global_bytes_in_flight", "ceiling.copy_bandwidth", "machine.parallel_units"};

}  // namespace

extern const Tool kLowMemoryParallelism;
const Tool kLowMemoryParallelism{
    .name = "low-memory-parallelism",
    .summary = "Too few bytes are in flight to saturate memory bandwidth.",
    .target = ToolTarget::kCuda,
    .bounds = kNotComputeBound,
    .needs = kLowMemoryParallelismNeeds,
    .analyse = low_memory_parallelism};

}  // namespace kernelpro
