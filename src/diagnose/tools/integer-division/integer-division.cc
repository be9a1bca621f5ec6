// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
// Instructions per division or remainder by a run-time value, as compiled by CUDA 13.
constexpr double kInline = 18;
constexpr double kCall = 75;  // 64 bits
constexpr double kLeastShare = 0.12;
constexpr double kLeastGain = 1.05;
constexpr double kGone = 0.75;  // of the time of the lines that divide, by samples: something stays
constexpr double kSlack = 2;    // what goes with it at most: registers, and code around them

std::optional<Finding> integer_division(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const double all = facts("sass.hot.integer_divisions");
  const double calls = std::min(all, facts.maybe("sass.hot.division_calls").value_or(0));
  if (instructions <= 0 || all <= 0) return std::nullopt;
  // The called code is outside the loop.
  const double cost = kInline * (all - calls) + kCall * calls;
  const double share = std::min(0.95, cost / (instructions + kCall * calls));
  if (share < kLeastShare) return std::nullopt;
  const KernelModel& model = facts.model();
  if (!model.counted() && facts.fraction_of_light() >= 0.6) {
    return std::nullopt;
  }
  Effect effect;
  for (const Resource r : {Resource::kIssue, Resource::kFma, Resource::kAlu, Resource::kXu}) {
    effect.scale(r, 1 - 0.9 * share);
  }
  effect.waiting = 1 - 0.85 * share;
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.sites = line_of(facts, {"sass.hot.integer_divisions", "sass.hot.division_calls"});
  const double lines = time_at(facts, finding.sites);
  finding.likely_speedup = std::max(finding.likely_speedup, speedup_without(kGone * lines));
  if (lines > 0) {
    finding.upper_speedup = std::max(finding.upper_speedup, kSlack * speedup_without(lines));
  }
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = share >= 0.5 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.integer_divisions", "sass.hot.instructions"};
  finding.cause = "The hot loop divides integers by run-time values " + number(all) + " times" +
                  (calls > 0 ? " (" + number(calls) + " of them 64-bit, as function calls)" : "") +
                  ": about " + percent(share) +
                  " of its instructions are these divisions and remainders.";
  finding.prescriptions = {
      {"index-arithmetic",
       "Make the divisor a compile-time constant (`constexpr` or a template parameter): shapes are "
       "known here, and a constant division is one multiplication and a shift.",
       "the divisor changes from call to call"},
      {"index-arithmetic",
       "Do not divide per element: let the grid and block have the tensor's dimensions, or step an "
       "index counter along (`if (++column == columns) column = 0, ++row;`).",
       ""},
      {"index-arithmetic",
       "Use 32-bit indices, or a precomputed multiplier and shift (`__umulhi`) for a run-time "
       "divisor.",
       "a tensor has more than 2^31 elements"}};
  return finding;
}

constexpr const char* kIntegerDivisionNeeds[] = {"sass.hot.integer_divisions",
                                                 "sass.hot.instructions"};

}  // namespace

extern const Tool kIntegerDivision;
const Tool kIntegerDivision{.name = "integer-division",
                            .summary = "Integers are divided by run-time values in the hot loop.",
                            .target = ToolTarget::kCuda,
                            .bounds = kNotMemoryBound,
                            .needs = kIntegerDivisionNeeds,
                            .analyse = integer_division};

}  // namespace kernelpro
