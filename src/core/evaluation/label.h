// SPDX-License-Identifier: Apache-2.0
// The caveats of a verdict, and how a candidate was run, with their meanings. docs/evaluation.md
// describes each in detail; to add a label, a value and a row here and a row there.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kernelpro {

// Stored and shown by name, so that the labels of other versions stay.
enum class Label {
  kGivenDistributionOnly,
  kGivenParametersOnly,
  kPreciseByNorm,
  kCoarserThanFp32,
  kFloat64AtReducedCase,
  kFloat64NotAlways,
  kNoFloat64,
  kToleranceOfModule,
  kDegenerate,
  kAboveMeasuredCeiling,
  kTimeDependsOnValues,
  kHostForm,  // timed as its own host code runs (docs/launch-plan.md)
  kNoFreshAudit,
};
struct LabelRow {
  Label label;
  std::string_view name;
  std::string_view meaning;  // one line
  // The kernel keeps the contract in part only: whatever its time, it ranks below one that keeps
  // all of it (`outranks`, core/evaluation/evaluation.h).
  bool partial = false;
};
std::span<const LabelRow> label_rows();
std::string_view label_name(Label label);  // "host-form"
// The meaning of a label; "" for an unknown name.
std::string_view label_meaning(std::string_view name);
bool is_partial(std::string_view name);  // as in its row; false for an unknown name

// How an evaluation ran the candidate.
enum class Trust {
  kPlan,       // its launch plan, without its host code
  kInProcess,  // cpu target
  kModule,     // a PyTorch candidate in host form: in its own Python process
};
std::string_view trust_name(Trust trust);                // "in-process"
std::string_view trust_meaning(std::string_view trust);  // "" for an unknown name

}  // namespace kernelpro
