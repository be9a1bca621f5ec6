// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

std::string cause(double scalar, double all, double share, double lanes, bool estimated) {
  const std::string part =
      estimated ? "an estimated " + percent(share) + " of the executed code" : percent(share);
  if (all <= 0) {
    return "The hot loops call scalar math functions, one element at a time (" + part +
           "); a packed instruction does up to " + number(lanes) + " fp32 elements.";
  }
  return number(scalar) + " of " + number(all) +
         " floating-point instructions in the hot loop are scalar (" + part +
         "); a packed one does up to " + number(lanes) + " fp32 elements.";
}

std::optional<Finding> scalar_code(const Facts& facts) {
  const double scalar = facts("cpu.asm.hot.scalar_fp");
  const double packed = facts("cpu.asm.hot.packed_fp");
  const double all = scalar + packed;
  // Evidence from earlier versions lacks the estimate of executed instructions.
  const std::optional<double> executed = facts.maybe("cpu.asm.hot.scalar_share");
  if (all <= 0 && !executed) return std::nullopt;
  const double share = executed ? *executed : scalar / all;
  if (share < 0.5) return std::nullopt;
  // Counts work, not instructions: a packed instruction equals `lanes` scalar ones.
  const double bits = facts.maybe("cpu.asm.hot.vector_bits").value_or(0);
  const double lanes = std::max(bits >= 256 ? bits / 32 : 8.0, 8.0);
  const bool doubtful = facts.maybe("cpu.asm.hot.packed_version").value_or(0) > 0;

  Finding finding;
  finding.severity = packed == 0 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"cpu.asm.hot.scalar_fp", "cpu.asm.hot.packed_fp"};
  if (executed) finding.metrics.emplace_back("cpu.asm.hot.scalar_share");
  finding.cause = cause(scalar, all, share, lanes, executed.has_value());
  finding.prescriptions = {
      {"vectorize",
       "Write a contiguous innermost loop over independent elements (`#pragma omp simd`, "
       "`__restrict__`), or use vector types.",
       "the innermost dimension is strided in memory; then change the loop order first"},
      {"unroll",
       "For a reduction, keep an array of independent partial sums: the compiler may not reorder a "
       "floating-point sum on its own.",
       "the order of the sum is part of the contract"}};
  finding.upper_speedup = speedup_without(share * (1 - 1 / lanes));
  finding.likely_speedup = speedup_without(share * (1 - 1 / (lanes / 2)));
  if (doubtful) {
    finding.severity = Severity::kInfo;
    finding.cause +=
        " The code also has a packed loop with the same arithmetic: profile which of the two runs.";
    finding.likely_speedup = 1;
  }
  return finding;
}

constexpr const char* kScalarCodeNeeds[] = {"cpu.asm.hot.packed_fp", "cpu.asm.hot.scalar_fp"};

}  // namespace

extern const Tool kScalarCode;
const Tool kScalarCode{
    .name = "scalar-code",
    .summary = "The hot loop does its floating-point work one element at a time.",
    .target = ToolTarget::kCpu,
    .bounds = kNotMemoryBound,
    .needs = kScalarCodeNeeds,
    .analyse = scalar_code};

}  // namespace kernelpro
