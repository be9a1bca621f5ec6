// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/account/gains.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLowOccupancy = 0.5;  // KernelPro's threshold
constexpr double kBusy = 0.8;          // resource utilization: more warps would only queue
constexpr double kIssues = 0.6;        // instructions per cycle: enough warps are ready
constexpr double kMoreWarps = 4;       // times the resident ones: typical after a fix
constexpr double kOverlapping = 0.75;
constexpr double kLeastGain = 1.05;
constexpr double kOfReadiness = 0.67;
constexpr double kBeyond = 1.2;
constexpr double kReserved = 1024;  // bytes of shared memory reserved per block

struct Limiter {
  const char* metric;
  const char* what;
};
// Registers are left to register-pressure.
constexpr Limiter kLimiters[] = {
    {"launch__occupancy_limit_shared_mem", "shared memory"},
    {"launch__occupancy_limit_blocks", "the number of blocks per SM"},
    {"launch__occupancy_limit_warps", "the block size"},
    {"launch__occupancy_limit_barriers", "named barriers"},
};

const Limiter* limiter(const Facts& facts) {
  const Limiter* tightest = nullptr;
  double least = facts.maybe("launch__occupancy_limit_registers").value_or(1e9);
  for (const Limiter& each : kLimiters) {
    const auto blocks = facts.maybe(each.metric);
    if (!blocks || *blocks > least || (*blocks == least && tightest != nullptr)) continue;
    least = *blocks;
    tightest = &each;
  }
  return tightest;
}

// With samples: what the warps of the next limit would gain, each ready as often as now (GPA's
// occupancy estimator).
std::optional<double> with_the_other_limits(const Facts& facts, const Limiter& tightest) {
  constexpr double kSchedulers = 4, kMostWarps = 64;
  const KernelAccount* account = facts.account();
  const auto now = resident_warps(facts);
  const auto block = facts.maybe("launch__block_size");
  if (account == nullptr || account->warp_issuing <= 0 || !now || !block || *block <= 0) {
    return std::nullopt;
  }
  if (facts.model().demand() <= 0) return std::nullopt;
  double blocks = facts.maybe("launch__occupancy_limit_registers").value_or(1e9);
  for (const Limiter& each : kLimiters) {
    if (std::string_view(each.metric) == tightest.metric) continue;
    blocks = std::min(blocks, facts.maybe(each.metric).value_or(1e9));
  }
  const auto grid = facts.maybe("launch__grid_size");
  const auto units = facts.maybe("machine.parallel_units");
  if (grid && units && *units > 0) blocks = std::min(blocks, std::ceil(*grid / *units));
  const double then = std::min(kMostWarps, blocks * std::ceil(*block / 32));
  return gain_of_warps(*account, *now / kSchedulers, then / kSchedulers);
}

Prescription advice(const std::string& metric, double shared) {
  if (metric == "launch__occupancy_limit_shared_mem") {
    return {"shared-memory",
            "Use less shared memory per block (" + human_bytes(shared) +
                " now): use a smaller tile or fewer stages, let buffers with disjoint lifetimes "
                "share memory, stage data in half precision.",
            "the tile feeds the tensor cores, or reuse would drop"};
  }
  if (metric == "launch__occupancy_limit_blocks") {
    return {"block-size", "Use larger blocks (128 to 256 threads).",
            "each block has work for one warp only and cannot be merged with others"};
  }
  return {"block-size",
          "Choose a block size that divides an SM's warps evenly (128 or 256 threads instead of "
          "one very large block).",
          "the block works on one tile that cannot be split"};
}

std::optional<Finding> occupancy_limiter(const Facts& facts) {
  const double occupancy = facts("sm__maximum_warps_per_active_cycle_pct") / 100;
  const Limiter* tightest = limiter(facts);
  if (tightest == nullptr || occupancy <= 0 || occupancy > kLowOccupancy) return std::nullopt;
  // Warpgroup matrix kernels and rings of bulk copies are designed for few warps.
  if (facts.maybe("sass.hgmma").value_or(0) > 0) return std::nullopt;
  if (facts.maybe("sass.bulk_copies").value_or(0) > 0) return std::nullopt;
  const KernelModel& model = facts.model();
  if (model.counted()) {
    if (model.demand() >= kBusy) return std::nullopt;
    if (facts.maybe("smsp__issue_active.avg.per_cycle_active").value_or(0) >= kIssues) {
      return std::nullopt;
    }
    if (facts.maybe("smsp__warps_eligible.avg.per_cycle_active").value_or(0) >= 1) {
      return std::nullopt;
    }
    // Enough loads are already in flight to reach the bandwidth.
    const auto needed = needed_in_flight(facts), under_way = in_flight(facts);
    if (facts.roofline().theory == Bound::kMemory && needed && under_way && *under_way >= *needed) {
      return std::nullopt;
    }
  } else if (!facts.roofline().known() || facts.roofline().fraction >= 0.6) {
    return std::nullopt;
  }
  // Latency stalls are nearly inversely proportional to the number of warps (Little's law).
  const double target = std::min(1.0, kMoreWarps * occupancy);
  Effect effect;
  effect.waiting = std::pow(occupancy / target, kOverlapping);
  Finding finding;
  set_gain(model.gain(effect), &finding);
  double most = 1;
  if (const auto more = with_the_other_limits(facts, *tightest)) {
    most = std::min(*more, 1 / model.demand());
    // Between the two models, nearer to the warps' own readiness (pairs on an H200).
    if (most > finding.likely_speedup) {
      finding.likely_speedup *= std::pow(most / finding.likely_speedup, kOfReadiness);
    }
  }
  Effect all;
  all.waiting = occupancy;
  finding.upper_speedup =
      std::max({finding.likely_speedup, model.gain(all).likely, kBeyond * most});
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  const double shared = facts.maybe("launch__shared_mem_per_block_dynamic").value_or(0) +
                        facts.maybe("launch__shared_mem_per_block_static").value_or(0) + kReserved;
  finding.severity = occupancy < 0.2 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sm__maximum_warps_per_active_cycle_pct", tightest->metric};
  if (model.counted()) finding.metrics.emplace_back("smsp__warps_eligible.avg.per_cycle_active");
  finding.cause = "Only " + percent(occupancy) +
                  " of the warps that an SM can hold are resident, limited by " + tightest->what +
                  " (" + number(facts(tightest->metric)) +
                  " blocks fit), and too few are ready to hide the latency.";
  finding.sites =
      tightest->metric == std::string_view("launch__occupancy_limit_shared_mem")
          ? joined({site_of(facts, {SiteKind::kLaunch}), site_of(facts, {SiteKind::kShared}),
                    site_of(facts, {SiteKind::kSharedArray})})
          : joined({site_of(facts, {SiteKind::kLaunch}), site_of(facts, {SiteKind::kBlock})});
  finding.prescriptions = {
      advice(tightest->metric, shared),
      {"unroll", "Or give each warp more independent work, so that fewer warps suffice.",
       "registers would spill"}};
  return finding;
}

constexpr const char* kOccupancyLimiterNeeds[] = {"sm__maximum_warps_per_active_cycle_pct"};

}  // namespace

extern const Tool kOccupancyLimiter;
const Tool kOccupancyLimiter{.name = "occupancy-limiter",
                             .summary = "Few warps are resident, too few to hide latency.",
                             .target = ToolTarget::kCuda,
                             .needs = kOccupancyLimiterNeeds,
                             .analyse = occupancy_limiter};

}  // namespace kernelpro
