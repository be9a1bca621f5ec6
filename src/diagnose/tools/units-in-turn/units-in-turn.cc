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

std::optional<Finding> units_in_turn(const Facts& facts) {
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
    .summary = "A kernel held by memory and one held by arithmetic run one after the other.",
    .target = ToolTarget::kCuda,
    .needs = kUnitsInTurnNeeds,
    .analyse = units_in_turn,
    .scope = Scope::kCall};

}  // namespace kernelpro
