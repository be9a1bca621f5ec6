// SPDX-License-Identifier: Apache-2.0
// Does a kernel that is right on the task's own inputs compute the task, or only what these inputs
// need? Probes draw other values of the same shapes. Shared by both targets: how probes of native
// tasks are drawn, and what failures on probes mean. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluation/evaluation.h"
#include "core/task/mismatch.h"
#include "core/task/task.h"
#include "measure/judge/precision.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

struct ProbePlan {
  DrawKind kind = DrawKind::kCentred;
  // Native tasks: how each tensor is drawn, in order of Task::tensors. Empty for tasks with a
  // Module, which draws itself (ModuleReference::draw; its `changed`: whether to go on).
  std::vector<Init> inits;
  // kLone, kFaint: the tensor that gets large or small (measure/judge/probe_shapes.h); -1: any.
  int tensor = -1;
};

// The probes of a task. A native task gets those that change something: centred and scaled for its
// floating inputs, parameters for its constant floating parameters, low bits where fp32 arithmetic
// is required; and every task those of the shapes below that apply to its tensors. Contract probes
// only: other policies have their own rules.
std::vector<ProbePlan> plan_probes(const Task& task);

bool changes_parameters(DrawKind kind);
// Whether an honest kernel has no reason to take another time for a kind's values.
bool keeps_time(DrawKind kind, bool multiplies);
inline constexpr double kValuesFactor = 1.25;  // the largest ratio of times on other values

// Which of `plans` to run, as places in it, in random order: all of them, or `most` (0: all).
// `resident`: for each, whether its contents are ready, which makes it cheap; they get half of the
// places, so that over many evaluations every kind runs with new contents.
std::vector<std::size_t> choose_probes(const std::vector<char>& resident, int most,
                                       std::uint64_t random);

// For messages: "on inputs centred on zero".
std::string probe_words(DrawKind kind);

// Puts the probes at these places of `plans`, in random order, in the order in which to prepare
// them where time may not suffice for all: first those of products, which show most, then one of
// each class: of parameters, of few elements, of large or small values, of each input alone, of all
// others. How many come first.
std::size_t put_telling_first(const std::vector<ProbePlan>& plans, std::vector<std::size_t>* order);

// A probe with an expected value that is not finite, or beyond this, is inconclusive; unless as
// many are not finite on the task's own inputs. It is tried with less large values, or skipped. So
// is one on which rounding alone may change a module's results by more than kProbeRoom times the
// tolerance; and a shape (probe_varies) on which nudged inputs change a native task's results so
// much that its scale would have to grow more than this.
double largest_value(DType dtype);

// A module's outputs are recomputed once with rounded operands, those with few elements several
// times: the signs of a few roundings may cancel by chance.
inline constexpr std::int64_t kManyRounded = 4096;
inline constexpr int kRoundedRuns = 4;
inline constexpr int kNudgedRuns = 2;  // of a task folder's reference, likewise, on the CPU
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
// Under Precision kFp32 a floating fp32 output that is out of tolerance on centred or sparse
// inputs or on those with other last digits, by less than 0.05 of its scale, was computed in less
// than fp32: rule "precision". (A single number may cancel by chance: outputs of fewer than 16
// elements only get the label.) Everything else is a label and a note.
// Norms are judged by measure/judge/precision.h.
ProbeVerdict judge_probes(Precision precision, const std::vector<ProbeFailure>& failures,
                          const std::vector<NormError>& norms = {});

}  // namespace kernelpro
