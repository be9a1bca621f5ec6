// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/label.h"

#include <algorithm>
#include <iterator>

#include "base/rows.h"

namespace kernelpro {

namespace {

constexpr LabelRow kLabels[] = {
    {Label::kGivenDistributionOnly, "given-distribution-only",
     "right on the task's own inputs, wrong on other values of the same shapes", true},
    {Label::kGivenParametersOnly, "given-parameters-only",
     "right with the parameters as constructed, wrong with others", true},
    {Label::kPreciseByNorm, "precise-by-norm",
     "fp32 by the norm of its errors, not in every element: a fast algorithm such as Winograd's"},
    {Label::kCoarserThanFp32, "coarser-than-fp32",
     "its errors are larger, by their norm, than those of plain fp32 sums in any order: two bf16 "
     "parts, or a fast algorithm with long sums",
     true},
    {Label::kFloat64AtReducedCase, "float64-at-reduced-case",
     "float64 did not fit at full size: checked against it in a smaller case, and against strict "
     "fp32 at full size"},
    {Label::kFloat64NotAlways, "float64-not-always",
     "some inputs were checked against strict fp32 alone: the GPU had no memory for float64 then"},
    {Label::kNoFloat64, "no-float64",
     "checked against the declared precision only: float64 did not fit"},
    {Label::kToleranceOfModule, "tolerance-of-module",
     "rounding alone may change the module's results by more than the tolerance: that much is "
     "allowed instead"},
    {Label::kDegenerate, "degenerate",
     "by the contract this task would be refused: an output is constant, holds no finite number, "
     "or does not depend on the inputs"},
    {Label::kAboveMeasuredCeiling, "above-measured-ceiling",
     "faster than this machine's measured ceilings allow for the task's declared work; checked "
     "again and confirmed"},
    {Label::kTimeDependsOnValues, "time-depends-on-values",
     "right on a probe's inputs, but faster or slower on them by more than a quarter"},
    {Label::kHostForm, "host-form",
     "no launch plan of it could be made: it was timed from outside, with what Python takes to "
     "submit its work, and any launch plan ranks before it"},
    {Label::kNoFreshAudit, "no-fresh-audit",
     "the reference is too slow to time the kernel again on unseen inputs"},
};
static_assert(rows_are_in_order(kLabels, &LabelRow::label));

struct TrustRow {
  Trust trust;
  std::string_view name;
  std::string_view meaning;
};
constexpr TrustRow kTrusts[] = {
    {Trust::kPlan, "plan", "only its launch plan and device code ran beside the data"},
    {Trust::kInProcess, "in-process", "its code ran in the process that holds the data"},
    {Trust::kModule, "module",
     "its Python code ran in a separate process, beside the data of one call"},
};
static_assert(rows_are_in_order(kTrusts, &TrustRow::trust));

template <class Row, std::size_t count>
std::string_view meaning_in(const Row (&rows)[count], std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.meaning;
  }
  return "";
}

}  // namespace

std::span<const LabelRow> label_rows() { return kLabels; }

std::string_view label_name(Label label) { return kLabels[static_cast<std::size_t>(label)].name; }

std::string_view label_meaning(std::string_view name) { return meaning_in(kLabels, name); }

bool is_partial(std::string_view name) {
  return std::any_of(std::begin(kLabels), std::end(kLabels),
                     [&](const LabelRow& row) { return row.name == name && row.partial; });
}

std::string_view trust_name(Trust trust) { return kTrusts[static_cast<std::size_t>(trust)].name; }

std::string_view trust_meaning(std::string_view trust) { return meaning_in(kTrusts, trust); }

}  // namespace kernelpro
