// SPDX-License-Identifier: Apache-2.0
#include "report/labels.h"

#include "core/evaluation/evaluation.h"

namespace kernelpro {

namespace {

constexpr Label kTrusts[] = {
    {"plan", "only its launch plan and device code ran beside the data"},
    {"in-process", "its code ran in the process that holds the data"},
    {"module", "its Python code ran in a separate process that holds the data"},
};

}  // namespace

const std::vector<Label>& known_labels() {
  static const std::vector<Label> labels = {
      {"given-distribution-only",
       "right on the task's own inputs, wrong on other values of the same shapes"},
      {"given-parameters-only", "right with the parameters as constructed, wrong with others"},
      {"precise-by-norm",
       "fp32 by the norm of its errors, not in every element: a fast algorithm such as Winograd's"},
      {"coarser-than-fp32",
       "its errors are larger, by their norm, than those of plain fp32 sums in any order: two bf16 "
       "parts, or a fast algorithm with long sums"},
      {"float64-at-reduced-case",
       "float64 did not fit at full size: checked against it in a smaller case, and against strict "
       "fp32 at full size"},
      {"float64-not-always",
       "some inputs were checked against strict fp32 alone: the GPU had no memory for float64 "
       "then"},
      {"no-float64", "checked against the declared precision only: float64 did not fit"},
      {"tolerance-of-module",
       "rounding alone may change the module's results by more than the tolerance: that much is "
       "allowed instead"},
      {"degenerate",
       "by the contract this task would be refused: an output is constant, holds no finite number, "
       "or does not depend on the inputs"},
      {"above-measured-ceiling",
       "faster than this machine's measured ceilings allow for the task's declared work; checked "
       "again and confirmed"},
      {"time-depends-on-values",
       "right on a probe's inputs, but faster or slower on them by more than a quarter"},
      {kHostFormLabel,
       "no launch plan of it could be made: it was timed from outside, with what Python takes to "
       "submit its work, and any launch plan ranks before it"},
      {"no-fresh-audit", "the reference is too slow to time the kernel again on unseen inputs"},
  };
  return labels;
}

std::string_view label_meaning(std::string_view name) {
  for (const Label& label : known_labels()) {
    if (label.name == name) return label.meaning;
  }
  return "";
}

std::string_view trust_meaning(std::string_view trust) {
  for (const Label& label : kTrusts) {
    if (label.name == trust) return label.meaning;
  }
  return "";
}

}  // namespace kernelpro
