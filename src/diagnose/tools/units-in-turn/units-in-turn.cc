// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "base/text.h"
#include "core/plan/kernel_name.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kLeastPart = 0.15;  // of the kernels' time, for each of the two
constexpr double kBusy = 0.7;        // of what good kernels reach: this unit sets the time
constexpr double kFree = 0.45;       // the other kernel leaves room on that unit
constexpr double kLeastGain = 1.1;
constexpr double kOverlapped = 0.5;  // of the shorter one's time, usually
constexpr double kMost = 0.7;        // within a kernel: neither unit sets the time
constexpr double kLeastDemand = 0.3;
constexpr double kTogether = 0.85;  // both in turn are the time,
constexpr double kNoMore = 1.05;    // and not more than it, which only units that overlap can be
constexpr double kWhole = 0.6;      // of the call: the kernel that counts

// A kernel that is held by memory, or by arithmetic.
struct Held {
  std::string name;
  double share = 0;
  double memory = 0, arithmetic = 0;  // demands
};

Held held(const KernelEvidence& kernel, const Facts& facts) {
  const KernelModel model(kernel.facts, nullptr, facts.roofline());
  Held result{kernel.name, kernel.facts.get("kernel.share").value_or(0), 0, 0};
  const bool beside = kernel.facts.get("kernel.concurrent").value_or(0) > 0;
  if (!model.counted() || beside) return result;
  result.memory = std::max(model.demand(Resource::kDram), model.demand(Resource::kL2));
  for (const Resource each :
       {Resource::kTensor, Resource::kFma, Resource::kAlu, Resource::kIssue}) {
    result.arithmetic = std::max(result.arithmetic, model.demand(each));
  }
  return result;
}

// Both within one kernel: what its bytes take of the time and what its products take add up to all
// of it.
std::optional<Finding> within_a_kernel(const Facts& facts) {
  for (const KernelEvidence& kernel : facts.kernels()) {
    const KernelModel model(kernel.facts, nullptr, facts.roofline());
    const double memory = model.demand(Resource::kDram);
    const double products = model.demand(Resource::kTensor);
    if (kernel.facts.get("kernel.share").value_or(0) < kWhole || !model.counted()) continue;
    if (std::min(memory, products) < kLeastDemand || std::max(memory, products) > kMost ||
        memory + products < kTogether || memory + products > kNoMore) {
      continue;
    }
    // The runner applies the share of a call's only kernel.
    const double share =
        facts.kernels().size() > 1 ? kernel.facts.get("kernel.share").value_or(0) : 1;
    Finding finding;
    finding.kernel = kernel.name;
    finding.upper_speedup = speedup_without(share * (1 - std::max(memory, products)));
    finding.likely_speedup = std::min(
        finding.upper_speedup, speedup_without(share * kOverlapped * std::min(memory, products)));
    finding.severity = Severity::kWarning;
    finding.metrics = {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
                       "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"};
    finding.cause =
        "Device memory alone would take " + percent(memory) + " of the time and the matrix units " +
        percent(products) + ", " + percent(memory + products) +
        " together: they work in turn. While a tile's results leave, no products are computed, and "
        "the other way round.";
    finding.prescriptions = {
        {"pipeline",
         "Let one tile's results leave under the next one's products: two consumer warpgroups on "
         "tiles of their own, half a tile apart, or results that go to shared memory and from "
         "there "
         "by bulk copies, which nobody awaits until their buffer is needed again.",
         "one tile is all that a block has: then let two smaller blocks share a multiprocessor"},
        {"pipeline",
         "Let the producer run on into the next tile: where its ring is full of the next tile's "
         "operands as the results leave, the products begin at once.",
         "shared memory has no room for stages beyond those in use"}};
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> units_in_turn(const Facts& facts) {
  if (auto found = within_a_kernel(facts)) return found;
  Held memory, arithmetic;
  for (const KernelEvidence& kernel : facts.kernels()) {
    const Held each = held(kernel, facts);
    if (each.memory >= kBusy && each.arithmetic < kFree && each.share > memory.share) memory = each;
    if (each.arithmetic >= kBusy && each.memory < kFree && each.share > arithmetic.share) {
      arithmetic = each;
    }
  }
  const double shorter = std::min(memory.share, arithmetic.share);
  if (shorter < kLeastPart) return std::nullopt;
  Finding finding;
  finding.likely_speedup = speedup_without(kOverlapped * shorter);
  finding.upper_speedup = speedup_without(shorter);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.metrics = {"kernel.share", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"};
  finding.cause = "`" + one_line(short_kernel_name(memory.name)) + "` (" + percent(memory.share) +
                  " of the kernels' time) is held by memory and leaves arithmetic idle, `" +
                  one_line(short_kernel_name(arithmetic.name)) + "` (" + percent(arithmetic.share) +
                  ") the other way round, and they run one after the other.";
  finding.prescriptions = {
      {"fusion",
       "Do both in one persistent kernel: some warps stream the one's data while others compute, "
       "tile by tile, so that memory and arithmetic are busy together.",
       "the second needs all results of the first before it can begin"},
      {"streams",
       "Cut both into slices and run slice n of the second beside slice n + 1 of the first, on two "
       "streams joined by events, or with dependent launches.",
       "slices are too small to fill the GPU"}};
  return finding;
}

constexpr const char* kUnitsInTurnNeeds[] = {"timing.median", "plan.kernels"};

}  // namespace

extern const Tool kUnitsInTurn;
const Tool kUnitsInTurn{
    .name = "units-in-turn",
    .summary = "Memory and arithmetic work in turn, in two kernels or within one.",
    .target = ToolTarget::kCuda,
    .needs = kUnitsInTurnNeeds,
    .analyse = units_in_turn,
    .scope = Scope::kCall};

}  // namespace kernelpro
