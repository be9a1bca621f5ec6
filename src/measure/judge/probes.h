// SPDX-License-Identifier: Apache-2.0
// Does a kernel that is right on the task's own inputs compute the task, or only what these inputs
// need? Probes draw other values of the same shapes. Shared by both targets: how probes of native
// tasks are drawn, and what failures on probes mean. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluation.h"
#include "core/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// Correct::labels set by probes.
inline constexpr std::string_view kGivenDistributionOnly = "given-distribution-only";
inline constexpr std::string_view kGivenParametersOnly = "given-parameters-only";

struct ProbePlan {
  DrawKind kind = DrawKind::kCentred;
  // Native tasks: how each tensor is drawn, in order of Task::tensors. Empty for tasks with a
  // Module, which draws itself (ModuleReference::draw; its `changed`: whether to go on).
  std::vector<Init> inits;
};

// The probes of a task in the order in which they run. A native task gets those that change
// something: centred and scaled for its floating inputs, parameters for its constant floating
// parameters, low bits where fp32 arithmetic is required. Contract probes only: other policies have
// their own rules.
std::vector<ProbePlan> plan_probes(const Task& task);

// Probe kLowBits, after drawing: changes the last digits of fp32 inputs, by up to 1/128
// (core/device/draw.h, lean_bits). Parameters stay: a kernel may rely on constant ones.
bool leans(const Tensor& tensor);
void lean(const Shaped& tensor, std::uint64_t digits, std::vector<char>* data);

// For messages: "on inputs centred on zero".
std::string probe_words(DrawKind kind);

// A probe with an expected value that is not finite, or beyond this, is inconclusive and skipped.
// (So is one on which rounding alone may change a module's results by more than kProbeRoom times
// the tolerance.)
double largest_value(DType dtype);

// A module's outputs are recomputed once with rounded operands, those with few elements several
// times: the signs of a few roundings may cancel by chance.
inline constexpr std::int64_t kManyRounded = 4096;
inline constexpr int kRoundedRuns = 4;
inline constexpr double kProbeRoom = 2;

struct ProbeFailure {
  DrawKind kind = DrawKind::kCentred;
  std::string case_name;
  std::string what;                                        // one sentence, as in the outcome
  double error = std::numeric_limits<double>::infinity();  // output-scaled; infinite: no number
  double tolerance = 0;
  std::int64_t elements = 0;  // of the output
  DType dtype = DType::kFp32;
};
// From an outcome other than Correct. `tensors`: of the case; the output is found by name.
ProbeFailure probe_failure(DrawKind kind, const std::string& case_name, const Outcome& outcome,
                           const std::vector<Shaped>& tensors);

struct ProbeVerdict {
  std::optional<Rejected> rejected;
  std::vector<std::string> labels;  // each once
  std::vector<std::string> notes;   // one sentence for each label
};
// Under Precision kFp32 a floating fp32 output that is out of tolerance on centred inputs or on
// those with other last digits, by less than 0.05 of its scale, was computed in less than fp32:
// rule "precision". (A single number may cancel by chance: outputs of fewer than 16 elements only
// get the label.) Everything else is a label and a note.
ProbeVerdict judge_probes(Precision precision, const std::vector<ProbeFailure>& failures);

}  // namespace kernelpro
