// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.03;  // of the hot loop's executed instructions
constexpr double kLeastStatic = 0.1;  // the same, where nothing counts executions
constexpr double kLeastBusy = 0.1;    // of the fp64 unit
constexpr double kLeastGain = 1.05;
constexpr double kLeastConverted = 0.05;  // of fp64 instructions: fewer are a program's own fp64
constexpr double kInFp32 = 0.25;          // of the time of the lines that compute in fp64
constexpr double kSlower = 2;             // fp64 over fp32 instruction time on data-center GPUs

// The hot loop's double-precision work that the task did not ask for, in instructions.
struct Doubles {
  double arithmetic = 0;
  double conversions = 0;
  double all() const { return arithmetic + conversions; }
};

Doubles doubles(const Facts& facts) {
  const double all = facts("sass.hot.fp64");
  Doubles result;
  result.conversions = std::min(all, facts.maybe("sass.hot.fp64_conversions").value_or(0));
  result.arithmetic = all - result.conversions;
  // These conversions feed the matrix units, which do fp64 on purpose.
  if (facts.maybe("sass.hot.dmma").value_or(0) > 0) result.conversions = 0;
  return result;
}

// No task has fp64 tensors (core/task/dtype.h), and only a task gives the bytes of its outputs.
bool has_task(const Facts& facts) { return facts.maybe("task.output_bytes").has_value(); }

// Without a task (a program, a profile), only values converted to fp64 and back show that it is no
// part of the data.
bool unasked(const Facts& facts, const Doubles& work) {
  return has_task(facts) || work.conversions >= kLeastConverted * work.all();
}

// The executed part of the hot loop's fp64 arithmetic, 0 to 1: the unit takes at least two cycles
// for a warp's instruction, so its busy time bounds how many ran. A sum finished in fp64 once in a
// while stands in the hot loop's code without taking part in its time.
double executed(const Facts& facts, double arithmetic, double instructions) {
  const auto busy = facts.model().busy(Resource::kFp64);
  const auto issue = facts.model().busy(Resource::kIssue);
  if (!busy || !issue || *issue <= 0 || arithmetic <= 0) return 1;
  return std::min(1.0, *busy / kSlower / *issue * instructions / arithmetic);
}

std::optional<Finding> accidental_fp64(const Facts& facts) {
  const double instructions = facts("sass.hot.instructions");
  const Doubles work = doubles(facts);
  const double wide = work.all(), conversions = work.conversions;
  // Conversions alone feed matrix units, or serve data that are stored so.
  if (instructions <= 0 || work.arithmetic <= 0 || !unasked(facts, work)) return std::nullopt;
  const KernelModel& model = facts.model();
  const bool measured = model.busy(Resource::kFp64).has_value();
  const double busy = model.busy(Resource::kFp64).value_or(0);
  const double part = executed(facts, work.arithmetic, instructions);
  if (busy < kLeastBusy && part * wide / instructions < (measured ? kLeastShare : kLeastStatic)) {
    return std::nullopt;
  }
  // Matrix units that do fp64 show that the author chose it, unless the other unit costs time.
  if (facts.maybe("sass.hot.dmma").value_or(0) > 0 && busy < kLeastBusy) return std::nullopt;
  if (!model.counted() && facts.fraction_of_light() >= 0.6) {
    return std::nullopt;
  }
  // A double takes two registers: constants and results move in pairs.
  const double moves = std::min(wide, facts.maybe("sass.hot.moves").value_or(0));
  const double share = std::min(0.95, part * (wide + moves) / instructions);
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
  // A function in fp64 is more than its fp64 instructions.
  finding.sites = line_of(facts, {"sass.hot.fp64", "sass.fp64"});
  const double lines = time_at(facts, finding.sites);
  finding.likely_speedup = std::clamp(speedup_without((1 - kInFp32) * lines),
                                      finding.likely_speedup, finding.upper_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = busy >= 0.5 || share >= 0.3 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sass.hot.fp64", "sass.hot.instructions"};
  finding.cause =
      number(wide) + " of the hot loop's " + number(instructions) +
      " instructions are double precision, although " +
      (has_task(facts) ? "no tensor of the task is" : "values are converted to it and back");
  if (model.busy(Resource::kFp64)) {
    finding.cause += "; the fp64 unit is busy " + percent(busy) + " of the time";
    finding.metrics.emplace_back("sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed");
  }
  finding.cause += ".";
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
    .bounds = kNotMemoryBound,
    .needs = kAccidentalFp64Needs,
    .analyse = accidental_fp64};

}  // namespace kernelpro
