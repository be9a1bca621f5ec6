// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.03;  // of the hot loop's instructions
constexpr double kLeastBusy = 0.1;
constexpr double kLeastGain = 1.05;
constexpr double kSlower = 2;  // fp64 over fp32 instruction time on data-center GPUs

std::optional<Finding> accidental_fp64(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const double wide = facts("sass.hot.fp64");
  const double conversions = facts.maybe("sass.hot.fp64_conversions").value_or(0);
  if (instructions <= 0 || wide <= 0) return std::nullopt;
  const KernelModel& model = facts.model();
  // A double takes two registers: constants and results move in pairs.
  const double moves = std::min(wide, facts.maybe("sass.hot.moves").value_or(0));
  const double share = std::min(0.95, (wide + moves) / instructions);
  const double busy = model.busy(Resource::kFp64).value_or(0);
  if (share < kLeastShare && busy < kLeastBusy) return std::nullopt;
  if (!model.counted() && (!facts.roofline().known() || facts.roofline().fraction >= 0.6)) {
    return std::nullopt;
  }
  // Arithmetic remains as fp32 work; conversions go away.
  const double kept = (wide - conversions) / (wide + moves);
  Effect effect;
  effect.scale(Resource::kFp64, 0);
  effect.scale(Resource::kXu, 1 - std::min(1.0, conversions > 0 ? 0.9 : 0.0));
  effect.scale(Resource::kIssue, 1 - share * (1 - kept / kSlower));
  effect.waiting = 1 - std::max(share, busy) * 0.7;
  Finding finding;
  set_gain(facts, effect, &finding);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = busy >= 0.5 || share >= 0.3 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.fp64", "sass.hot.instructions"};
  finding.cause = number(wide) + " of the hot loop's " + number(instructions) +
                  " instructions are double precision, although no tensor of the task is";
  if (model.busy(Resource::kFp64)) {
    finding.cause += "; the fp64 unit is busy " + percent(busy) + " of the time";
    finding.metrics.emplace_back("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed");
  }
  finding.cause += ".";
  finding.where = line_of(facts, {"sass.hot.fp64", "sass.fp64"});
  finding.prescriptions = {
      {"precision",
       "Make it fp32: literals with an f (`0.5f`), `expf`, `sqrtf`, `fabsf` instead of the double "
       "forms, `float` constants and accumulators (`-Xptxas -warn-double-usage` reports where).",
       "the sum needs double precision to meet the tolerance"},
      {"precision",
       "Where a sum needs more than fp32, use pairwise or compensated (Kahan) summation in fp32, "
       "and double only for the last few additions.",
       ""}};
  return finding;
}

constexpr const char* kAccidentalFp64Needs[] = {"sass.hot.fp64", "sass.hot.instructions"};

}  // namespace

extern const Tool kAccidentalFp64;
const Tool kAccidentalFp64{
    .name = "accidental-fp64",
    .summary = "Double-precision arithmetic in a task without double-precision data.",
    .target = ToolTarget::kCuda,
    .needs = kAccidentalFp64Needs,
    .analyse = accidental_fp64};

}  // namespace kernelpro
