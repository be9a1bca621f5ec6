// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

std::optional<Finding> scalar_code(const Facts& facts) {
  const double scalar = facts("cpu.asm.hot.scalar_fp");
  const double packed = facts("cpu.asm.hot.packed_fp");
  const double all = scalar + packed;
  if (all <= 0) return std::nullopt;
  // Work, not instructions: a packed instruction stands for `lanes` scalar ones.
  const double bits = facts.maybe("cpu.asm.hot.vector_bits").value_or(0);
  const double lanes = std::max(bits >= 256 ? bits / 32 : 8.0, 8.0);
  const double share = scalar / all;
  if (share < 0.5) return std::nullopt;

  Finding finding;
  finding.severity = packed == 0 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"cpu.asm.hot.scalar_fp", "cpu.asm.hot.packed_fp"};
  finding.cause = number(scalar) + " of " + number(all) +
                  " floating-point instructions in the hot loop are scalar (" + percent(share) +
                  "); a packed one does up to " + number(lanes) + " fp32 elements.";
  finding.prescriptions = {
      {"vectorize",
       "Give the compiler a contiguous innermost loop over independent elements (`#pragma omp "
       "simd`, `__restrict__`), or write it with vector types.",
       "the innermost dimension is strided in memory; then change the loop order first"},
      {"unroll",
       "For a reduction, keep an array of independent partial sums: the compiler may not reorder "
       "a single floating-point sum by itself.",
       "the order of the sum is part of the contract"}};
  finding.upper_speedup = speedup_without(share * (1 - 1 / lanes));
  finding.likely_speedup = speedup_without(share * (1 - 1 / (lanes / 2)));
  return finding;
}

}  // namespace kernelpro
