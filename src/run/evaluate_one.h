// SPDX-License-Identifier: Apache-2.0
// Judges kernels without a run: verdict, evidence, diagnosis (`kernelpro evaluate`). Compilers run
// in parallel on the CPU cores while references are prepared and kernels are measured; each GPU has
// its own station and thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/baseline.h"
#include "core/proposal/proposal.h"
#include "core/task/task.h"
#include "measure/station/local.h"
#include "measure/station/settings.h"

namespace kernelpro {

struct KernelFile {
  std::string path;  // for messages
  std::string source;
  Language language = Language::kCpp;
  // Sets knobs that the source declares to values that it lists; others keep their defaults.
  KnobValues knobs;
};

// Sets Origin::kGiven. Fails with kBadInput on faulty knobs and on values that they do not list.
Result<Candidate> candidate_of(const Task& task, const KernelFile& kernel);

struct EvaluateOneResult {
  Candidate candidate;
  Evaluation evaluation;  // versus the kernel to compare with, if there is one and it is correct
  Evidence evidence;      // empty unless correct
  Diagnosis diagnosis;
  Machine machine;                  // with the best ceilings that the command knows
  std::vector<Baseline> baselines;  // PyTorch's times, if they were asked for
  std::vector<std::string> labels;  // of the verdict: the kernel's and the task's
  std::string gpu;                  // the GPU that judged it; "" = the first
  // Time spent, in milliseconds: "target" (machine, compilers, processes) and "prepare"
  // (references), both once per GPU; "compile", "wait" (for the compiler or the GPU), "evaluate",
  // "evidence".
  std::map<std::string, double> phases_ms;
};

struct EvaluateManySettings {
  StationSettings station;            // `gpus`: one station each
  std::optional<KernelFile> against;  // what to compare with; default: the task's starting kernel
  std::optional<BaselineOrder> baselines;  // carried out first, while nothing else runs
  bool last = false;                       // the process exits afterwards (leave_children_behind)
};

// Called as verdicts arrive, from one thread at a time, with the kernel's index in the list; again
// for kernels whose diagnosis has changed, because a later one had the machine's ceilings measured
// again.
using OnVerdict = std::function<void(std::size_t index, const EvaluateOneResult& result)>;

// Returns verdicts in the order of `kernels`. Fails with kBadInput on faulty knobs, before anything
// runs; with kTask or kEnvironment when the task or the machine is at fault. A kernel's own
// failures are in its evaluation.
Result<std::vector<EvaluateOneResult>> evaluate_many(const Task& task,
                                                     const std::vector<KernelFile>& kernels,
                                                     const EvaluateManySettings& settings,
                                                     const OnVerdict& on_verdict,
                                                     StationMaker maker = local_stations());

// One kernel in the target's native language.
Result<EvaluateOneResult> evaluate_one(const Task& task, TargetKind target,
                                       const std::string& source, const KnobValues& overrides,
                                       const StationSettings& settings,
                                       StationMaker maker = local_stations());

}  // namespace kernelpro
