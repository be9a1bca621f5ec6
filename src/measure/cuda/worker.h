// SPDX-License-Identifier: Apache-2.0
// What the supervisor says to a worker of the cuda target, native or Python (core/protocol.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/cuda/case.h"

namespace kernelpro {

// A worker that runs one or both subjects of an evaluation.
struct CudaWorker {
  CudaLink link;
  bool module = false;  // Python: calls by stream launch; else graphs replayed from plans
};

// Sends what a worker must know of the cases and their memory, without waiting for answers.
void post_cases(CudaLink& link, const Task& task, const std::vector<CudaCase>& cases);

// Loads a native subject under a name. nullopt, or what went wrong with it. `facts` (may be null):
// of its launches, by metric name; `notes` (may be null): what the reader of a verdict must know.
std::optional<Outcome> load_plan(CudaWorker& worker, const CudaCase& state, const char* name,
                                 const Binary& binary, const LaunchPlan& plan,
                                 std::map<std::string, double>* facts,
                                 std::vector<std::string>* notes);
// Loads a PyTorch file as a subject. Building it may take `timeout_s`. What the reader of a verdict
// must know of it goes to `notes`.
std::optional<Outcome> load_module(CudaWorker& worker, const CudaCase& state, const Task& task,
                                   Policy policy, const char* name, const Binary& binary,
                                   double timeout_s, std::map<std::string, double>* facts,
                                   std::vector<std::string>* notes);

// One call per set, in order, each with noise from its key put where the last call left things.
// nullopt, or what went wrong. `doing`: for the sentence, "checking case big (kernel k)".
std::optional<Outcome> run_sets(CudaWorker& worker, const CudaCase& state, const char* name,
                                const SetKeys& steps, double timeout_s, const std::string& doing);

// What a failed answer of a worker says about the candidate that it ran.
Outcome worker_outcome(const Answer& answer, const std::string& doing,
                       const std::string& case_name);

// "k, reduce" for the kernels of a plan, demangled, each once.
std::string kernel_names(const LaunchPlan& plan);

}  // namespace kernelpro
