// SPDX-License-Identifier: Apache-2.0
// Kernels judged without a run: verdict, evidence, diagnosis (`kernelpro evaluate`). Compilers work
// side by side on the CPU cores while the references are prepared and kernels are measured; each
// GPU has an evaluator and a thread of its own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/proposal.h"
#include "core/task.h"
#include "measure/station/settings.h"
#include "measure/station/target.h"

namespace kernelpro {

struct KernelFile {
  std::string path;  // for messages
  std::string source;
  Language language = Language::kCpp;
  // Set knobs that the source declares to values that it lists; others keep their defaults.
  KnobValues knobs;
};

// With proposer "given". Fails with kBadInput on faulty knobs, and on values that they do not list.
Result<Candidate> candidate_of(const Task& task, const KernelFile& kernel);

struct EvaluateOneResult {
  Candidate candidate;
  Evaluation evaluation;  // versus the one to compare with, where that is there and correct
  Evidence evidence;      // empty unless correct
  Diagnosis diagnosis;
  Machine machine;
  std::vector<std::string> labels;  // of the verdict: the kernel's own and those of the task here
  std::string gpu;                  // which one judged it; "" the first
  // Where the time went, milliseconds: "target" (machine, compilers, processes), "prepare"
  // (references; both once per GPU), "compile", "wait" (for the compiler or the GPU), "evaluate",
  // "evidence".
  std::map<std::string, double> phases_ms;
};

struct EvaluateManySettings {
  StationSettings station;
  std::vector<std::string> gpus;      // cuda: one evaluator each; empty: one, on run.gpu
  int jobs = 0;                       // compilers at once; 0: as many as there are cores
  std::optional<KernelFile> against;  // what to compare with; else the task's starting kernel
  bool last = false;                  // the process exits afterwards (leave_children_behind)
};

// Called as verdicts come, from one thread at a time, with the kernel's place in the list.
using OnVerdict = std::function<void(std::size_t index, const EvaluateOneResult& result)>;

// Verdicts in the order of `kernels`. Fails with kBadInput on faulty knobs, before anything runs;
// with kTask, kEnvironment when the task or the machine is at fault. What a kernel does wrong is in
// its evaluation.
Result<std::vector<EvaluateOneResult>> evaluate_many(const Task& task,
                                                     const std::vector<KernelFile>& kernels,
                                                     const EvaluateManySettings& settings,
                                                     const OnVerdict& on_verdict,
                                                     TargetMaker maker = make_target);

// One kernel in the target's own language.
Result<EvaluateOneResult> evaluate_one(const Task& task, TargetKind target,
                                       const std::string& source, const KnobValues& overrides,
                                       const StationSettings& settings,
                                       TargetMaker maker = make_target);

}  // namespace kernelpro
