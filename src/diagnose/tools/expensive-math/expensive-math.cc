// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

// Extra instructions of each beyond a plain operation, as compiled by CUDA 13 for sm_90.
constexpr double kDivision = 9;        // IEEE division against a multiply by a reciprocal
constexpr double kTrigonometric = 30;  // argument reduction for large angles, inline part
constexpr double kPower = 84;          // powf against a few multiplications
// How to recognize powf: each has one reciprocal, three conversions and more selects than this.
constexpr double kPowerConversions = 3;
constexpr double kPowerSelects = 15;
constexpr double kExponential = 7;   // instructions of an expf, its special function included
constexpr double kMostAround = 0.9;  // of the loop
constexpr double kXuRate = 8;        // special-function-unit cycles per warp instruction
constexpr double kRarely = 4;        // margin for the estimate from the unit's counter
constexpr double kLeastShare = 0.12;
constexpr double kLeastGain = 1.05;

double powers_of(const Facts& facts) {
  const double powers =
      std::min({facts.maybe("sass.hot.mufu_reciprocal").value_or(0),
                facts.maybe("sass.hot.conversions").value_or(0) / kPowerConversions,
                facts.maybe("sass.hot.selects").value_or(0) / kPowerSelects});
  return std::floor(powers);
}

std::optional<Finding> expensive_math(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const double special = facts("sass.hot.mufu") + facts.maybe("sass.hot.conversions").value_or(0);
  const double divisions = facts.maybe("sass.hot.precise_divisions").value_or(0);
  const double angles = facts.maybe("sass.hot.trigonometric_slow_paths").value_or(0);
  const double roots = facts.maybe("sass.hot.mufu_root").value_or(0);
  if (instructions <= 0 || special + divisions + angles <= 0) return std::nullopt;
  const double powers = powers_of(facts);
  const double extra = kDivision * divisions + kTrigonometric * angles + kPower * powers;
  double share = std::min(0.96, extra / instructions);
  const KernelModel& model = facts.model();
  // Divisions and powers use the unit: where it is mostly idle they run rarely, as behind a branch.
  const auto busy = model.busy(Resource::kXu), issuing = model.busy(Resource::kIssue);
  if (busy && issuing && *issuing > 0 && special > 0 && angles <= 0) {
    share = std::min(share, kRarely * *busy / kXuRate * extra / special / *issuing);
  }
  // The unit's time for one loop pass over the loop's issue time.
  const double unit = std::min(1.0, kXuRate * special / std::max(instructions, kXuRate * special));
  const bool bound = model.counted() ? model.demand(Resource::kXu) >= 0.5 : unit >= 0.6;
  if (share < kLeastShare && !bound) return std::nullopt;
  if (!model.counted() && (!facts.roofline().known() || facts.roofline().fraction >= 0.5)) {
    return std::nullopt;
  }
  // In a memory-bound task without counters, report only instructions that clearly fill the loop.
  if (!model.counted() && facts.roofline().theory == Bound::kMemory && share < 0.3) {
    return std::nullopt;
  }
  // Where they are the limit, what surrounds an exponential goes along with it.
  const double around =
      bound ? std::min(kMostAround, kExponential *
                                        facts.maybe("sass.hot.mufu_exponential").value_or(0) /
                                        instructions)
            : 0;
  Effect effect;
  for (const Resource r : {Resource::kIssue, Resource::kFma, Resource::kAlu}) {
    effect.scale(r, 1 - std::max(share, 0.5 * around));
  }
  effect.scale(Resource::kXu, bound ? 0.5 : 1 - share);
  effect.waiting = 1 - std::max(share, bound ? 0.4 : 0.0) * 0.8;
  // The argument reduction for large angles keeps its digits in a local-memory array.
  const double local = angles > 0 ? local_part(facts).value_or(0) : 0;
  if (local > 0) {
    effect.scale(Resource::kL1, 1 - local).scale(Resource::kLsu, 1 - local);
    effect.scale(Resource::kL2, 1 - local);
    effect.waiting = std::min(effect.waiting, 1 - std::max(share, local * memory_wait(facts, 0)));
  }
  Finding finding;
  set_gain(facts, effect, &finding);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = bound && share >= kLeastShare ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.mufu", "sass.hot.instructions"};
  finding.cause = "The hot loop's " + number(instructions) + " instructions include " +
                  number(special) + " special functions and conversions";
  if (divisions > 0) {
    finding.cause += ", " + number(divisions) + " full-precision divisions";
    finding.metrics.emplace_back("sass.hot.precise_divisions");
  }
  if (angles > 0) {
    finding.cause += ", " + number(angles) + " argument reductions of sine and cosine";
    finding.metrics.emplace_back("sass.hot.trigonometric_slow_paths");
  }
  if (powers > 0) {
    finding.cause += ", " + number(powers) + " full powers (`powf`, about " + number(kPower) +
                     " instructions each)";
    finding.metrics.emplace_back("sass.hot.selects");
  }
  if (busy) {
    finding.cause += "; their unit is busy " + percent(*busy) + " of the time";
    finding.metrics.emplace_back("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed");
  }
  finding.cause += ".";
  finding.sites = line_of(
      facts, {"sass.hot.precise_divisions", "sass.hot.trigonometric_slow_paths", "sass.hot.mufu"});
  if (divisions > 0) {
    finding.prescriptions.push_back(
        {"fast-math",
         "Divide once: hoist the reciprocal out of the loop and multiply, or use `__fdividef` or "
         "`__frcp_rn`.",
         "results must be correctly rounded"});
  }
  if (powers > 0) {
    finding.prescriptions.push_back(
        {"fast-math",
         "Multiply for small whole exponents (`x * x * x`), take `sqrtf` and `rsqrtf` for halves, "
         "`exp2f(y * __log2f(x))` for others; make the exponent a compile-time constant.",
         "bases near 1 with large exponents need every digit"});
  }
  if (angles > 0) {
    finding.prescriptions.push_back(
        {"fast-math", "`__sinf`/`__cosf`, or `sinpif`/`cospif` for angles in multiples of pi.",
         "angles are large or the tolerance is below 1e-6"});
  }
  finding.prescriptions.push_back(
      {"fast-math",
       std::string(
           "Use the hardware versions: `__expf` or `exp2f` with log2(e) folded in, `__logf`, ") +
           (roots > 0 ? "`rsqrtf` instead of a root and a division, " : "") +
           "`x * x * x` instead of `powf`, `tanh.approx`.",
       "the tolerance does not allow an error of a few ulp"});
  finding.prescriptions.push_back({"algorithm",
                                   "Compute fewer of them: once per row instead of per element, or "
                                   "some as a polynomial on the FMA units.",
                                   ""});
  return finding;
}

constexpr const char* kExpensiveMathNeeds[] = {"sass.hot.mufu", "sass.hot.instructions"};

}  // namespace

extern const Tool kExpensiveMath;
const Tool kExpensiveMath{.name = "expensive-math",
                          .summary = "Special functions, divisions or conversions limit the loop.",
                          .target = ToolTarget::kCuda,
                          .bounds = kNotMemoryBound,
                          .needs = kExpensiveMathNeeds,
                          .analyse = expensive_math};

}  // namespace kernelpro
