// SPDX-License-Identifier: Apache-2.0
// One search on one task: measure, diagnose, change, verify, measure again, keep the best. The only
// room that knows all mechanisms.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/objective.h"
#include "core/evidence/counters.h"
#include "core/proposal/proposal.h"
#include "core/task/policy.h"
#include "core/task/task.h"
#include "run/gpu_use.h"
#include "run/result.h"
#include "run/store/settings.h"
#include "write/roles.h"

namespace kernelpro {

class ModuleReference;

// What is wrong with a run before anything is measured or asked: nothing is created, and no model
// is called. `optimize` checks it, too.
Result<void> check_run(const Task& task, const RunSettings& settings);

// Creates the run directory and runs until a stopper fires. Fails with kStore if the directory
// exists and is not empty. `module`: the already running reference of a task with a Module
// (task/open/open_task.h); null starts one.
Result<RunResult> optimize(const Task& task, const RunSettings& settings, const Observer& observer,
                           std::shared_ptr<ModuleReference> module = nullptr);
// Continues a run of this machine's target; nothing is evaluated twice. The original settings
// apply, except for the budgets when `budgets` is given.
Result<RunResult> resume(const std::string& directory, const RunSettings* budgets,
                         const Observer& observer);

// The two halves of an exchange, so that writing and measuring can happen on different machines.
// `propose` writes `count` requests into DIR/exchange and returns their folders; it needs neither
// compiler nor GPU. `measure` evaluates the replies found there regardless of budgets, confirms the
// best if it is to `confirm`, and returns; it needs the machine that the run began on. Without new
// replies it confirms what an earlier call left unconfirmed. Both hold the run's lock. A run's
// folder may be copied between them. `wanted` replaces what the run's settings say of the requests.
struct RequestChanges {
  std::optional<Feedback> feedback;
  std::optional<std::string> prompts;  // folder of prompts, as in WriterSettings
};
Result<std::vector<std::string>> propose(const std::string& directory, int count,
                                         const RequestChanges& wanted = {});
Result<RunResult> measure(const std::string& directory, const Observer& observer,
                          bool confirm = true);
// As `propose`, with models that answer at once: planner, coder, fixer and look-ups, as in a run.
// Their kernels, up to `count`, and every question are in the run afterwards; `measure` or `resume`
// measures them. Returns how many were written; fails with kEnvironment when the models ended
// without one.
Result<int> propose_by_models(const std::string& directory, const RoleSettings& roles, int count,
                              const Observer& observer);

}  // namespace kernelpro
