// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/evidence/rates.h"
#include "diagnose/account/costly.h"
#include "diagnose/account/make_account.h"
#include "diagnose/account/mix.h"
#include "diagnose/roofline/model.h"
#include "diagnose/roofline/parts.h"

namespace kernelpro {

namespace {

using Waits = std::array<double, kStalls>;

std::size_t index(Stall stall) { return static_cast<std::size_t>(stall); }
bool waits(Stall stall) { return stall != Stall::kSelected && stall != Stall::kNotSelected; }

// How a scheduler spends the cycles in which it has warps, in fractions of them.
struct Exposure {
  double issued = 0;
  Waits exposed{};  // nothing was issued, and this is why
  Waits hidden{};
  double warp_issuing = 0;
  Level level = Level::kCounters;
  const char* how = "";
};

// Top-down: issue | exposed | hidden (core/evidence/places.h).
Exposure from_places(const Places& places) {
  const bool sampled = places.basis == Places::Basis::kSampled;
  Exposure e;
  e.level = sampled ? Level::kCounters : Level::kStatic;
  e.how = sampled ? "samples in which the scheduler issued nothing, by stall reason"
                  : "estimated from machine code, by stall reason";
  double all = 0;
  for (const StallShare& stall : places.stalls) {
    if (stall.stall == Stall::kSelected) e.warp_issuing = std::clamp(stall.share, 0.0, 1.0);
    if (!waits(stall.stall)) continue;
    const double exposed = std::clamp(stall.exposed, 0.0, 1.0);
    e.exposed[index(stall.stall)] += exposed;
    e.hidden[index(stall.stall)] += std::max(0.0, std::min(1.0, stall.share) - exposed);
    all += exposed;
  }
  if (all > 1) {
    for (double& each : e.exposed) each /= all;
  }
  e.issued = std::max(0.0, 1 - all);
  return e;
}

// Cycles without an issue, divided among the reasons as the warps' stalled cycles are.
std::optional<Exposure> from_counters(const Evidence& facts) {
  const auto issued = facts.get("smsp__issue_active.avg.per_cycle_active");
  if (!issued) return std::nullopt;
  Exposure e;
  e.how = "cycles without an issue, divided as the warps' stalled cycles are";
  e.issued = std::clamp(*issued, 0.0, 1.0);
  double all = 0;
  for (int i = 0; i < kStalls; ++i) {
    const auto stall = static_cast<Stall>(i);
    if (!waits(stall)) continue;
    const auto cycles = facts.get("smsp__average_warps_issue_stalled_" +
                                  std::string(stall_row(stall).name) + "_per_issue_active.ratio");
    e.exposed[index(stall)] = std::max(0.0, cycles.value_or(0));
    all += e.exposed[index(stall)];
  }
  for (double& each : e.exposed) each = all > 0 ? each * (1 - e.issued) / all : 0;
  const auto latency = facts.get("smsp__average_warp_latency_per_inst_issued.ratio");
  if (latency && *latency >= 1) e.warp_issuing = 1 / *latency;
  return e;
}

std::optional<Exposure> exposure_of(const Evidence& facts) {
  const auto& places = facts.places;
  const bool some = places && !places->stalls.empty();
  if (some && places->basis == Places::Basis::kSampled) return from_places(*places);
  if (const auto counted = from_counters(facts)) return counted;
  return some ? std::optional(from_places(*places)) : std::nullopt;
}

bool of_memory(Stall stall) {
  return stall == Stall::kLongScoreboard || stall == Stall::kLgThrottle ||
         stall == Stall::kTexThrottle || stall == Stall::kDrain;
}
bool of_arithmetic(Stall stall) {
  return stall == Stall::kMathPipeThrottle || stall == Stall::kGmma || stall == Stall::kWait ||
         stall == Stall::kDispatchStall;
}

template <class Match>
double all_of(const Waits& waits_us, Match matches) {
  double all = 0;
  for (int i = 0; i < kStalls; ++i) {
    if (matches(static_cast<Stall>(i))) all += waits_us[i];
  }
  return all;
}

// Takes `us` out of the waits that match, each in proportion; returns what they did not have.
template <class Match>
double cover(double us, Match matches, Waits* waits_us) {
  const double all = all_of(*waits_us, matches);
  if (all <= 0 || us <= 0) return us;
  const double left = std::max(0.0, 1 - us / all);
  for (int i = 0; i < kStalls; ++i) {
    if (matches(static_cast<Stall>(i))) (*waits_us)[i] *= left;
  }
  return std::max(0.0, us - all);
}

double cover_issue(double us, double* issue_us) {
  const double taken = std::min(us, *issue_us);
  *issue_us -= taken;
  return us - taken;
}

// The floor's time passes in the same cycles as waits and issues: first in those of its own kind,
// then in all others alike, since copies and matrix units work beside them.
void cover_floor(double us, bool memory, double* issue_us, Waits* waits_us) {
  if (memory) {
    us = cover(us, of_memory, waits_us);
  } else {
    us = cover(cover_issue(us, issue_us), of_arithmetic, waits_us);
  }
  const auto any = [](Stall) { return true; };
  const double all = *issue_us + all_of(*waits_us, any);
  if (all <= 0 || us <= 0) return;
  const double part = std::min(1.0, us / all);
  cover(part * all_of(*waits_us, any), any, waits_us);
  cover_issue(part * *issue_us, issue_us);
}

// Of the start and the end of a launch, when its busiest multiprocessor has no block.
constexpr double kMostRampUs = 5;

// The start, the tail and unequal blocks: cycles of multiprocessors without a block. Counters of
// one launch come from several passes, which take unequally long where later ones find in the cache
// what the first one fetched: a ramp that is longer than that is such a difference, and the busiest
// multiprocessor says how long its own pass took.
void take_idle(const Evidence& evidence, const Evidence& facts, Spending* kernel) {
  const auto mean = facts.get("sm__cycles_active.avg");
  const auto most = facts.get("sm__cycles_active.max");
  const auto elapsed = facts.get("gpc__cycles_elapsed.max");
  const double us = kernel->all();
  if (mean && elapsed && *elapsed > 0) {
    const double busiest = std::max(*mean, most.value_or(*elapsed));
    const double launches = std::max(1.0, facts.get("kernel.launches").value_or(1));
    const double ramp = std::clamp(us * (1 - busiest / *elapsed), 0.0, kMostRampUs * launches);
    kernel->take({PartKind::kRamp,
                  {},
                  ramp,
                  Level::kCounters,
                  "1 - sm__cycles_active.max / gpc__cycles_elapsed.max, at most 5 us a launch"});
    kernel->take({PartKind::kWaves,
                  {},
                  (us - ramp) * (busiest - *mean) / busiest,
                  Level::kCounters,
                  "1 - sm__cycles_active.avg / .max, of what the ramp leaves"});
    return;
  }
  const auto waves = facts.get("launch__waves_per_multiprocessor");
  const auto grid = facts.get("launch__grid_size");
  const auto units = evidence.get("machine.parallel_units");
  if (!waves || *waves <= 0 || !grid || *grid <= 0 || !units || *units < 1) return;
  const double fill = *waves > 1 ? *waves : *grid / *units;
  kernel->take({PartKind::kWaves,
                {},
                us * (1 - fill / std::ceil(fill)),
                Level::kTiming,
                "1 - waves / waves rounded up, from grid and occupancy"});
}

constexpr double kFewer = 0.97;  // of the definition's products: a way of its own

// What the matrix products take that the kernel computes itself, where a way with fewer of them
// than the definition's is its own: how long they keep the matrix units busy, at what good kernels
// take from these. 0: it has no such way, was not counted, or computes no fewer.
double own_products_us(const Evidence& facts, const Roofline& roofline, double us) {
  const auto busy = facts.get("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed");
  if (!roofline.less_work || !busy) return 0;
  const double own_us = std::min(1.0, *busy / 100 / resource_limit(Resource::kTensor)) * us;
  return own_us < kFewer * roofline.compute_floor_us ? own_us : 0;
}

// Bytes that the kernel moved beyond those of its floor, at the measured bandwidth.
double excess_us(const Evidence& evidence, const Evidence& facts, double memory_floor_us) {
  const auto bytes = device_bytes(facts);
  const auto bandwidth = evidence.get("ceiling.copy_bandwidth");
  if (!bytes || !bandwidth || *bandwidth <= 0) return 0;
  return *bytes / *bandwidth * 1e6 - memory_floor_us;
}

}  // namespace

KernelAccount kernel_account(const std::string& name, double us, const Evidence& evidence,
                             const Evidence& facts, const Roofline& roofline,
                             const KernelFloor& least) {
  Spending kernel(us);
  KernelAccount account;
  account.kernel = name;
  account.us = kernel.all();
  add_mix(facts, &account);
  const double own_us = own_products_us(facts, roofline, us);
  const bool own = own_us > least.us;
  account.memory_bound = !own && roofline.theory != Bound::kCompute;
  const double floor =
      kernel.take({PartKind::kFloor,
                   {},
                   std::max(own_us, least.us),
                   own ? Level::kCounters : Level::kTiming,
                   own ? "the products that it computes, fewer than the definition's / tensor rate"
                   : account.memory_bound ? "compulsory bytes / copy bandwidth"
                   : multiplies_in_parts(evidence)
                       ? "the task's products, three of fp16 parts each / tensor rate"
                       : "the task's operations / arithmetic rate"});
  const double before = kernel.left();
  take_idle(evidence, facts, &kernel);
  // In this time multiprocessors have warps; the floor lies within it.
  const double active = floor + kernel.left();
  const double excess = excess_us(evidence, facts, least.memory_us);
  const char* const excess_how =
      least.memory_us > 0 ? "bytes moved beyond the compulsory ones / copy bandwidth"
                          : "bytes moved / copy bandwidth; how many are needed is unknown";
  const std::optional<Exposure> seen = before > 0 ? exposure_of(facts) : std::nullopt;
  if (!seen) {
    kernel.take({PartKind::kTraffic, {}, excess, Level::kCounters, excess_how});
    account.parts = kernel.close("what warps wait for was not observed");
    return account;
  }
  account.issuing = seen->issued;
  account.warp_issuing = seen->warp_issuing;
  double issue_us = active * seen->issued;
  Waits waits_us{};
  for (int i = 0; i < kStalls; ++i) waits_us[i] = active * seen->exposed[i];
  const Waits exposed_us = waits_us;
  cover_floor(floor, account.memory_bound, &issue_us, &waits_us);
  if (!account.memory_bound && !own && floor > 0) {
    const double times = products_of_parts(evidence, facts, us) / fewest_products(evidence);
    const double rate = matmul_rate(evidence);
    const double least_us =
        rate > 0 ? evidence.get("task.matmul_flops").value_or(0) / rate * 1e6 : 0;
    const double surplus = kernel.take({PartKind::kSurplus,
                                        {},
                                        least_us * (times - 1),
                                        Level::kCounters,
                                        "products of parts that the matrix units computed, beyond "
                                        "the fewest that the contract needs"});
    cover_floor(surplus, false, &issue_us, &waits_us);
  }
  // More bytes than needed cost what waits for memory, not what they could take at most.
  const double memory_waits = all_of(waits_us, of_memory);
  const double traffic = kernel.take(
      {PartKind::kTraffic, {}, std::min(excess, memory_waits), Level::kCounters, excess_how});
  cover(traffic, of_memory, &waits_us);
  kernel.take({PartKind::kIssue,
               {},
               issue_us,
               seen->level,
               "cycles in which a scheduler issued, beyond the floor's"});
  std::vector<std::pair<double, Stall>> order;
  for (int i = 0; i < kStalls; ++i) order.emplace_back(waits_us[i], static_cast<Stall>(i));
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [wait_us, stall] : order) {
    kernel.take({PartKind::kWait, stall, wait_us, seen->level, seen->how});
  }
  for (int i = 0; i < kStalls; ++i) {
    const double hidden = active * seen->hidden[i];
    if (hidden > 0) account.hidden.push_back({static_cast<Stall>(i), hidden});
  }
  account.parts = kernel.close("neither floor, idle multiprocessors nor waits account for it");
  if (facts.places && roofline.fraction < kAtCeiling) {
    Waits beyond{};
    for (int i = 0; i < kStalls; ++i) {
      beyond[i] = exposed_us[i] > 0 ? waits_us[i] / exposed_us[i] : 0;
    }
    add_costly_places(*facts.places, {active, issue_us, beyond},
                      evidence.get("timing.median").value_or(account.us), &account);
  }
  return account;
}

}  // namespace kernelpro
