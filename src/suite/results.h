// SPDX-License-Identifier: Apache-2.0
// The results of each task under each arm, read only from the runs below DIR: any process may read
// them at any time, whichever process ran them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/baseline.h"
#include "core/evaluation/evaluation.h"
#include "run/store/held_out.h"
#include "suite/measures.h"
#include "suite/settings.h"

namespace kernelpro {

enum class RunState {
  kWaiting,   // not started
  kOpen,      // started, not finished: interrupted, killed or in progress
  kFinished,  // its winner is confirmed, or it found none
  kBroken,    // could not be started, or went wrong: `reason`
};
std::string_view run_state_name(RunState state);

struct TaskResult {
  std::string arm;
  SuiteTask task;
  std::string directory;
  RunState state = RunState::kWaiting;
  std::string reason;  // broken: why, and what to do
  // The members below are set once the run has started.
  std::string machine, writer, created;
  bool correct = false;   // some candidate other than the start was correct
  bool compiled = false;  // some candidate other than the start was built
  std::string failure;    // of the last candidate, if none is correct
  bool start_correct = false;
  bool tried_nothing = false;             // ended with only the start
  bool waits_for_replies = false;         // open, with an unanswered request in `exchange`
  bool confirmed = false;                 // in fresh processes, that candidate against the start
  double speedup = 0, low = 0, high = 0;  // over the start, of the fastest such candidate; 0: none
  double start_us = 0, best_us = 0;
  std::vector<Timing> timings;    // of that candidate
  std::vector<HeldOut> held_out;  // cases that the search did not see; if confirmed
  std::string trust;              // how it was run (core/evaluation/evaluation.h)
  double fraction = 0;            // of the speed of light
  int evaluations = 0, failed = 0;
  double seconds = 0;  // run time over all sittings
  std::int64_t tokens = 0, questions = 0;
  double usd = 0;
  bool usd_known = true;            // of all questions
  std::vector<Baseline> baselines;  // PyTorch's times, if measured
};

// Why a task has no run; kept in the run's folder until there is one. A fault of the task is final
// until its files change; after a fault of the machine the next call tries again.
struct Breakage {
  Error error;
  bool final = false;
  std::string task = {};  // hash of its files at that time
};
// Hash of the names and contents of a task's folder or module.
std::string task_fingerprint(const SuiteTask& task);
// Whether the fault is the task's and its files are unchanged: no use to try again.
bool holds(const Breakage& breakage, const SuiteTask& task);
Result<void> write_breakage(const std::string& run_folder, const Breakage& breakage);
bool read_breakage(const std::string& run_folder, Breakage* breakage);
void forget_breakage(const std::string& run_folder);

// How a search ended; kept in the run's folder once it has. The store alone cannot distinguish a
// search that found nothing from one that was cut off.
struct Ending {
  std::string stopped_by;
  bool tried_nothing = false;             // ended with only the start
  std::vector<std::int64_t> unconfirmed;  // candidates that failed confirmation in fresh processes
};
Result<void> write_ending(const std::string& run_folder, const Ending& ending);
bool read_ending(const std::string& run_folder, Ending* ending);

Result<void> write_baselines(const std::string& run_folder, const std::vector<Baseline>& baselines);
bool has_baselines(const std::string& run_folder);

TaskResult read_result(const SuiteSettings& settings, const Arm& arm, const SuiteTask& task);
// Whether it counts in measures: it is finished, or has a correct kernel and waits for replies.
bool has_result(const TaskResult& result);
// The results of all arms, tasks in order within each.
std::vector<TaskResult> read_results(const SuiteSettings& settings);

// What speed-ups are over, unless it is a baseline.
inline constexpr const char* kOverStart = "start";
// kOverStart, and the names of all baselines that any task has.
std::vector<std::string> yardsticks(const std::vector<TaskResult>& results);
// Scores of an arm's finished results; `level` 0: all. The yardstick is kOverStart or the name of a
// baseline, which is compared on the baseline's case.
std::vector<Score> scores(const std::vector<TaskResult>& results, const std::string& arm, int level,
                          const std::string& yardstick);

}  // namespace kernelpro
