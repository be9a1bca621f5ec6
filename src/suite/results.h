// SPDX-License-Identifier: Apache-2.0
// What came of each task under each arm, read from the runs below DIR and from nothing else: any
// process may ask at any time, whoever ran them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation.h"
#include "run/store/held_out.h"
#include "suite/measures.h"
#include "suite/settings.h"
#include "task/reference/baseline.h"

namespace kernelpro {

enum class RunState {
  kWaiting,   // not begun
  kOpen,      // begun, not finished: interrupted, killed or under way
  kFinished,  // its winner is confirmed, or it found none
  kBroken,    // could not be begun or went wrong: `reason`
};
std::string_view run_state_name(RunState state);

struct TaskResult {
  std::string arm;
  SuiteTask task;
  std::string directory;
  RunState state = RunState::kWaiting;
  std::string reason;  // broken: why, and what to do
  // What follows holds for runs that have begun.
  std::string machine, writer, created;
  bool correct = false;   // some candidate but the start gave the right result
  bool compiled = false;  // some candidate but the start was built
  std::string failure;    // of the last candidate, where none is correct
  bool start_correct = false;
  bool tried_nothing = false;             // ended with nothing but the start to show
  bool confirmed = false;                 // in fresh processes, that candidate against the start
  double speedup = 0, low = 0, high = 0;  // over the start, of the fastest such candidate; 0: none
  double start_us = 0, best_us = 0;
  std::vector<Timing> timings;    // of that candidate
  std::vector<HeldOut> held_out;  // cases that the search did not know; where it is confirmed
  std::string trust;              // who ran it (core/evaluation.h)
  double fraction = 0;            // of the speed of light
  int evaluations = 0, failed = 0;
  double seconds = 0;  // of run time, over all sittings
  std::int64_t tokens = 0, questions = 0;
  double usd = 0;
  std::vector<Baseline> baselines;  // PyTorch by itself, where it was measured
};

// Kept in the run's folder while there is no run: why there is none. A fault of the task is final
// until its files change; one of the machine is tried again by the next call.
struct Breakage {
  Error error;
  bool final = false;
  std::string task = {};  // hash of its files then
};
// Of a task's folder or module: names and contents.
std::string task_fingerprint(const SuiteTask& task);
Result<void> write_breakage(const std::string& run_folder, const Breakage& breakage);
bool read_breakage(const std::string& run_folder, Breakage* breakage);
void forget_breakage(const std::string& run_folder);

// Kept in the run's folder once its search has ended by itself: the store alone does not tell a
// search that found nothing from one that was cut off.
struct Ending {
  std::string stopped_by;
  bool tried_nothing = false;             // it ended with nothing but the start to show
  std::vector<std::int64_t> unconfirmed;  // candidates that did not hold in fresh processes
};
Result<void> write_ending(const std::string& run_folder, const Ending& ending);
bool read_ending(const std::string& run_folder, Ending* ending);

Result<void> write_baselines(const std::string& run_folder, const std::vector<Baseline>& baselines);
bool has_baselines(const std::string& run_folder);

TaskResult read_result(const SuiteSettings& settings, const Arm& arm, const SuiteTask& task);
// Of all arms, tasks in order within each.
std::vector<TaskResult> read_results(const SuiteSettings& settings);

// "start", and the names of all baselines that some task has.
std::vector<std::string> yardsticks(const std::vector<TaskResult>& results);
// Finished results of an arm as scores; `level` 0: all. Against "start" or a baseline by its name,
// whose time is compared in the baseline's own case.
std::vector<Score> scores(const std::vector<TaskResult>& results, const std::string& arm, int level,
                          const std::string& yardstick);

}  // namespace kernelpro
