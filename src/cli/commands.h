// SPDX-License-Identifier: Apache-2.0
// What the commands share.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "cli/subcommand.h"
#include "core/task/task.h"
#include "measure/remote/stations.h"
#include "run/choices.h"
#include "run/run.h"

namespace kernelpro {

// Returns the value or throws Fatal with its error.
template <class T>
T require(Result<T> result) {
  if (!result) throw Fatal(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Throws Fatal when --evaluations or --seconds leaves nothing to do.
void check_budgets(const Options& options);
// The most evaluations that a command takes.
inline constexpr int kMostEvaluations = 1000000000;
// Budgets from --evaluations, --seconds, --near-ceiling, --plateau.
void read_budgets(const Options& options, RunSettings* settings);
// --timeout: the limit of one call, in seconds; throws Fatal when it leaves none.
double read_timeout(const Options& options);
// Throws Fatal when --gpu was given for kernels of the CPU.
void refuse_gpu_on_cpu(const Options& options, TargetKind target);
// The proposer, how results are judged, budgets and writers. The caller sets the task, the folder,
// the target, the start, the recorded run and the record of findings.
RunSettings read_run_settings(const Options& options, const Host& host = Host());
// Models and their budgets: what `optimize` and `propose` share.
void read_roles(const Options& options, RoleSettings* roles);
// Models, their budgets, prompts, feedback and --start-from.
void read_writers(const Options& options, RunSettings* settings);
// Applies those of --max-tokens, --max-usd and --max-calls that were given.
void read_model_budgets(const Options& options, RoleSettings* roles);
// Exit statuses other than those of errors (base/error.h; docs/run-store.md#exit-statuses).
constexpr int kNothingAchieved = 7;
// 128 plus the signal number, as in a shell. REQUIRES: stop_on_signals() was called.
int interrupted_status();
// Fails for what can be refused before anything is measured (run/run.h), and drops a folder that
// was made for the run, not named for it.
void refuse_unsound(const Task& task, const RunSettings& settings, const Options& options);
// Common begin of optimize and replay: names the run's folder, and says what was changed to make
// the task fit.
void announce_run(const RunSettings& settings, const Task& task,
                  const std::vector<std::string>& notes, bool json);
// Common end of optimize, resume, measure and replay: writes report.html and the last lines.
// Returns the exit status.
int finish_run(const std::string& directory, const Result<RunResult>& result, bool json);
// Where a file about a run goes by default: into its folder, or, for a run as text (a.jsonl),
// beside it (a.report.html).
std::string default_output(const std::string& run, const std::string& name);
// The first SIGINT or SIGTERM ends the run after its current step, a second one ends the process.
void stop_on_signals();

}  // namespace kernelpro
