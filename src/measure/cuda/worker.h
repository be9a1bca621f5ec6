// SPDX-License-Identifier: Apache-2.0
// Commands from the supervisor to a worker of the cuda target, native or Python
// (core/plan/protocol.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/evidence/missing.h"
#include "measure/cuda/case.h"

namespace kernelpro {

struct HostSide;

// A worker that runs one or both subjects of an evaluation.
struct CudaWorker {
  CudaLink link;
  bool module = false;  // Python, in host form; else graphs replayed from plans
  std::shared_ptr<HostSide> host = nullptr;  // of a module (measure/cuda/host_side.h)
};

// A module's tensors as a message has them: "name", "label", "role", "dtype", "shape".
Json tensors_json(const CudaCase& state);

// Sends the cases and their memory to a worker, without waiting for answers. Their buffers lie
// where `place` says, inputs and parameters to be read only where the driver can do that, unless
// `writable`. Clears whatever the worker had.
void post_cases(CudaLink& link, const Task& task, const std::vector<CudaCase>& cases,
                std::uint64_t place, bool writable = false);

// The same for a worker whose cases lie elsewhere than at `place`; 0: any place will do.
void move_to(CudaLink& link, const Task& task, const std::vector<CudaCase>& cases,
             std::uint64_t place);

// A case as the command "open" has it.
Json case_json(const Task& task, const CudaCase& state, std::uint64_t place);

// The command that loads a plan in the case `name` (core/plan/protocol.h).
Json load_command(const std::string& case_name, const std::string& subject, const Binary& binary,
                  const LaunchPlan& plan);

// Loads a native subject under a name. nullopt, or the fault. `facts` (may be null): what only the
// driver knows of its launches, by metric name; `notes` (may be null): notes for the verdict.
std::optional<Outcome> load_plan(CudaWorker& worker, const CudaCase& state, const char* name,
                                 const Binary& binary, const LaunchPlan& plan,
                                 std::map<std::string, double>* facts,
                                 std::vector<std::string>* notes);
// Where a process finds a PyTorch candidate's file: in its own folder.
Result<std::string> module_file(CudaLink& link, const Binary& binary);

// Loads a PyTorch file as a subject. Building it may take `timeout_s`. `notes` gets notes for the
// verdict.
std::optional<Outcome> load_module(CudaWorker& worker, const CudaCase& state, const Task& task,
                                   Policy policy, const char* name, const Binary& binary,
                                   double timeout_s, std::map<std::string, double>* facts,
                                   std::vector<std::string>* notes);

// One call per set, in order, each after overwriting shared and local memory with noise from its
// key. nullopt, or the fault. `doing`: for the message, "checking case big (kernel k)".
// `reordered` (may be null) gets the sets on which the subject's launches ran in another order than
// usual, one that its plan allows.
std::optional<Outcome> run_sets(CudaWorker& worker, const CudaCase& state, const char* name,
                                const SetKeys& steps, double timeout_s, const std::string& doing,
                                std::set<int>* reordered = nullptr);

// Why a process that observes a candidate's kernels did not answer a command. `doing`: "profiled",
// "sampled"; `otherwise`: what to do when its process ends again.
Missing missing_from(const Answer& answer, Family family, const std::string& doing,
                     const std::string& otherwise);

// The outcome of a candidate whose worker failed to answer properly.
Outcome worker_outcome(const Answer& answer, const std::string& doing,
                       const std::string& case_name);

// "k, reduce" for the kernels of a plan, demangled, each once.
std::string kernel_names(const LaunchPlan& plan);

}  // namespace kernelpro
