// SPDX-License-Identifier: Apache-2.0
// Does a kernel that is right on the task's own inputs compute the task, or only what these inputs
// need? Probes draw other values of the same shapes. What both targets share: how probes of native
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

// Correct::labels that probes give.
inline constexpr std::string_view kGivenDistributionOnly = "given-distribution-only";
inline constexpr std::string_view kGivenParametersOnly = "given-parameters-only";

struct ProbePlan {
  DrawKind kind = DrawKind::kCentred;
  // Native tasks: how each tensor is drawn, in order of Task::tensors. Empty for tasks with a
  // Module, which draws itself (ModuleReference::draw; its `changed` tells whether to go on).
  std::vector<Init> inits;
};

// The probes of a task in the order in which they run. A native task gets those that change
// something: centred and scaled for its floating inputs, parameters for its constant floating
// parameters, low bits where fp32 arithmetic is owed. Only the contract probes: other policies have
// rules of their own.
std::vector<ProbePlan> plan_probes(const Task& task);

// Probe kLowBits, after drawing: elements of fp32 inputs get other last digits, by up to 1/128
// (core/device/draw.h, lean_bits). Parameters stay: a kernel may know constant ones.
bool leans(const Tensor& tensor);
void lean(const Shaped& tensor, std::uint64_t seed, std::vector<char>* data);

// As words of a sentence: "on inputs centred on zero".
std::string probe_words(DrawKind kind);

// A probe whose expected values include one that is not finite, or beyond this, says nothing about
// a kernel: it is skipped. (So is one on which rounding alone may change a module's results by more
// than kProbeRoom times the tolerance.)
double largest_value(DType dtype);

// A module's outputs are computed with rounded operands once, those with few elements several
// times: the signs of a few roundings may cancel by chance.
inline constexpr std::int64_t kManyRounded = 4096;
inline constexpr int kRoundedRuns = 4;
inline constexpr double kProbeRoom = 2;

struct ProbeFailure {
  DrawKind kind = DrawKind::kCentred;
  std::string case_name;
  std::string what;                                        // one sentence, as the outcome tells it
  double error = std::numeric_limits<double>::infinity();  // output-scaled; infinite: no number
  double tolerance = 0;
  std::int64_t elements = 0;  // of the output
  DType dtype = DType::kFp32;
};
// Of an outcome that is not Correct. `tensors`: of the case; finds the output by its name.
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
