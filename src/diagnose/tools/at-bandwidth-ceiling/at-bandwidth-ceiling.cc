// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "core/machine/machine.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kAtCeiling = 0.9;  // of the measured copy bandwidth, compulsory bytes only
// Device memory is at its limit and moves little beyond the compulsory bytes.
constexpr double kSaturated = 0.97;
constexpr double kNoExcess = 1.1;
constexpr double kNearCeiling = 0.8;
// Without the task: of what good kernels reach, sectors over the fewest, and of the call's time.
constexpr double kBusy = 0.82;
constexpr double kWasted = 1.3;
constexpr double kWholeCall = 0.7;
constexpr double kLarge = 200e6;  // too large for any cache

// For the call's only kernel: device memory is saturated, and all of its traffic is needed.
bool saturated_with_need(const Facts& facts) {
  const auto moved = dram(facts);
  const auto least = compulsory(facts);
  return moved && least && facts.model().demand(Resource::kDram) >= kSaturated &&
         moved->bytes() <= kNoExcess * least->bytes;
}

// The call does not touch all bytes that count as compulsory (rows picked from a large table), so
// that the theoretical time does not apply.
bool leaves_bytes_alone(const Facts& facts) {
  const auto moved = dram(facts);
  const auto least = compulsory(facts);
  return moved && least && least->bytes >= kLarge && moved->bytes() < 0.6 * least->bytes;
}

// Without the task: device memory is as busy as copies make it, and no access wastes sectors.
std::optional<Finding> by_counters(const Facts& facts) {
  const KernelModel& model = facts.model();
  const auto moved = dram(facts);
  if (!model.counted() || !moved || model.busiest() != Resource::kDram) return std::nullopt;
  if (model.demand() < kBusy || worst_excess(facts) >= kWasted) return std::nullopt;
  if (facts.maybe("kernel.share").value_or(1) < kWholeCall) return std::nullopt;
  Finding finding;
  finding.stop = true;
  finding.metrics = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                     "dram__bytes_read.sum", "dram__bytes_write.sum"};
  finding.cause = "Device memory is busy " + percent(*model.busy(Resource::kDram)) +
                  " of the time, " + percent(model.demand()) + " of what copies reach, and moves " +
                  human_bytes(moved->bytes()) +
                  " without wasted sectors (estimated from counters: how many of these bytes are "
                  "needed is unknown).";
  finding.prescriptions = {{"algorithm",
                            "Stop tuning this kernel, unless it moves bytes more than once: only "
                            "moving fewer can help.",
                            ""}};
  return finding;
}

std::optional<Finding> at_bandwidth_ceiling(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  if (roof.time_us <= 0) return std::nullopt;
  if (!roof.known()) return by_counters(facts);
  const double fraction = roof.memory_floor_us / roof.time_us;
  const bool saturated = fraction >= kNearCeiling && saturated_with_need(facts);
  if ((fraction < kAtCeiling && !saturated) || leaves_bytes_alone(facts)) return std::nullopt;
  // A copy measured beside other work shows too low a bandwidth: reaching it is no reason to stop.
  if (!saturated && facts.maybe("ceiling.disturbed").value_or(0) > 0) return std::nullopt;

  Finding finding;
  finding.stop = true;
  finding.metrics = {"task.compulsory_bytes", "ceiling.copy_bandwidth", "timing.median"};
  finding.cause = "The compulsory traffic takes at least " + human_us(roof.memory_floor_us) +
                  " at the copy bandwidth of " + per_second(facts("ceiling.copy_bandwidth"), "B") +
                  "; the call takes " + human_us(roof.time_us) + ", which is " +
                  (fraction >= 1 ? "at the ceiling (" + ceiling_share(fraction) + ")."
                                 : percent(fraction) + " of that ceiling.");
  if (fraction > kCopySlack) finding.cause += " Part of the data is served from a cache.";
  if (fraction < kAtCeiling) {
    finding.cause += " Device memory is " +
                     percent(facts.model().busy(Resource::kDram).value_or(0)) +
                     " busy, moving little more than the compulsory bytes.";
    finding.metrics.emplace_back("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed");
  }
  finding.prescriptions = {{"algorithm",
                            "Stop tuning this kernel: only moving fewer bytes can help, for "
                            "instance with a narrower type or by fusing it with its neighbours.",
                            "the task's contract fixes types and tensors"}};
  return finding;
}

constexpr const char* kAtBandwidthCeilingNeeds[] = {"timing.median", "ceiling.copy_bandwidth"};

}  // namespace

extern const Tool kAtBandwidthCeiling;
const Tool kAtBandwidthCeiling{
    .name = "at-bandwidth-ceiling",
    .summary = "Memory traffic already runs at the measured bandwidth: stop here.",
    .target = ToolTarget::kAny,
    .bounds = kMemoryLike,
    .needs = kAtBandwidthCeilingNeeds,
    .analyse = at_bandwidth_ceiling,
    .scope = Scope::kCall};

}  // namespace kernelpro
