// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.15;  // of the hot loop's instructions
constexpr double kLeastGain = 1.05;
constexpr double kMostly = 0.6;     // of the half-precision arithmetic
constexpr double kServesTwo = 0.9;  // of all instructions

std::optional<Finding> scalar_half_math(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const double scalar = facts("sass.hot.half_scalar");
  const double narrow = facts.maybe("sass.hot.half_conversions_scalar").value_or(0);
  if (instructions <= 0 || scalar + narrow < 2) return std::nullopt;
  const double share = (scalar + narrow) / instructions;
  const KernelModel& model = facts.model();
  if (share < kLeastShare) return std::nullopt;
  if (!model.counted() && facts.fraction_of_light() >= 0.6) {
    return std::nullopt;
  }
  // Where a thread has one value at a time, whatever it does for it serves two afterwards.
  const double loads = facts.maybe("sass.hot.global_loads").value_or(0);
  const double math = facts.maybe("sass.hot.half_math").value_or(0);
  const bool one_each = math > 0 && scalar >= kMostly * math && loads > 0 &&
                        facts.maybe("sass.hot.global_loads_narrow").value_or(0) >= loads;
  const double halved = one_each ? kServesTwo : share;
  Effect effect;
  for (const Resource r : {Resource::kIssue, Resource::kFma, Resource::kAlu}) {
    effect.scale(r, 1 - 0.5 * halved);
  }
  effect.waiting = 1 - 0.5 * halved;
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.upper_speedup = std::max(finding.likely_speedup, std::min(finding.upper_speedup, 2.0));
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.metrics = {"sass.hot.half_scalar", "sass.hot.instructions"};
  finding.cause = number(scalar + narrow) + " of the hot loop's " + number(instructions) +
                  " instructions compute or convert one half-precision value, although one "
                  "instruction can handle two.";
  finding.sites = line_of(facts, {"sass.hot.half_scalar", "sass.hot.half_conversions_scalar"});
  finding.prescriptions = {
      {"vectorize",
       "Work on pairs: `__half2`/`__nv_bfloat162` with `__hfma2`, `__hadd2`; convert with "
       "`__float22half2_rn`.",
       "neighboring elements need different operations"},
      {"vectorize", "Load eight half-precision values at a time (128 bits) and keep them packed.",
       "addresses are not 16-byte aligned"}};
  return finding;
}

constexpr const char* kScalarHalfMathNeeds[] = {"sass.hot.half_scalar", "sass.hot.instructions"};

}  // namespace

extern const Tool kScalarHalfMath;
const Tool kScalarHalfMath{.name = "scalar-half-math",
                           .summary = "Half-precision values are processed one at a time.",
                           .target = ToolTarget::kCuda,
                           .bounds = kNotMemoryBound,
                           .needs = kScalarHalfMathNeeds,
                           .analyse = scalar_half_math};

}  // namespace kernelpro
