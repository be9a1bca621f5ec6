// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.08;  // of the hot loop's instructions
constexpr double kLeastBusy = 0.5;
constexpr double kLeastGain = 1.03;

std::optional<Finding> unfused_multiply_add(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const double pairs = facts("sass.hot.fp32_fusable");
  if (instructions <= 0 || pairs < 2) return std::nullopt;
  const double share = pairs / instructions;
  const KernelModel& model = facts.model();
  if (share < kLeastShare) return std::nullopt;
  if (model.counted() &&
      std::max(model.demand(Resource::kFma), model.demand(Resource::kIssue)) < kLeastBusy) {
    return std::nullopt;
  }
  if (!model.counted() && facts.roofline().theory != Bound::kCompute) return std::nullopt;
  Effect effect;
  effect.scale(Resource::kFma, 1 - share).scale(Resource::kIssue, 1 - share);
  effect.waiting = 1 - share;
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.upper_speedup = std::max(finding.likely_speedup, std::min(2.0, 1 / (1 - 1.5 * share)));
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.metrics = {"sass.hot.fp32_fusable", "sass.hot.instructions"};
  finding.cause =
      number(pairs) +
      " multiplications in the hot loop begin a sum that an addition of its own ends: " +
      percent(share) + " of its instructions would go away as fused multiply-adds.";
  finding.sites = line_of(facts, {"sass.hot.fp32_fusable", "sass.hot.ffma"});
  finding.prescriptions = {
      {"fast-math",
       "Write `fmaf(a, b, c)` for each product, onto the running sum, and do not use `__fmul_rn` "
       "and `__fadd_rn` (or `-fmad=false`), which forbid fusing.",
       "results must be bit-identical to unfused ones"},
      {"algorithm", "Reorder sums so that each product meets an addition.", ""}};
  return finding;
}

constexpr const char* kUnfusedMultiplyAddNeeds[] = {"sass.hot.fp32_fusable",
                                                    "sass.hot.instructions"};

}  // namespace

extern const Tool kUnfusedMultiplyAdd;
const Tool kUnfusedMultiplyAdd{.name = "unfused-multiply-add",
                               .summary = "Multiplications and additions are not fused into FMAs.",
                               .target = ToolTarget::kCuda,
                               .bounds = kNotMemoryBound,
                               .needs = kUnfusedMultiplyAddNeeds,
                               .analyse = unfused_multiply_add};

}  // namespace kernelpro
