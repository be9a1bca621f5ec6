// SPDX-License-Identifier: Apache-2.0
// A suite as a Slurm job array on a shared file system: each job is one worker (suite/work.h) with
// one GPU, and what they did is read from DIR as ever. Jobs may be killed, preempted and requeued
// at any moment. The launcher submits again while tasks are left, and may itself be ended and
// started again: DIR/slurm/array.json names the array that is out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/stop.h"
#include "suite/results.h"

namespace kernelpro {

struct SlurmSettings {
  int jobs = 0;                      // of an array; 0: one a task, 64 at most
  std::vector<std::string> options;  // for sbatch, "--partition=gpu" or "partition=gpu"
  bool wait = true;                  // false: submit and return
  double poll_s = 5;                 // how often squeue is asked
};

struct SlurmHears {
  std::function<void(const std::string& sentence)> note;  // submitted, held, submitted again
  std::function<void(const TaskResult&)> end;             // a task is finished or broken
};

// The words that sbatch is called with; `script` is the job's file. An own --gres or --gpus
// replaces the one GPU a job, which target cpu does not ask for.
std::vector<std::string> sbatch_words(const SuiteSettings& suite, const SlurmSettings& slurm,
                                      int jobs, const std::string& script);

// What a worker prints of its tasks: the ends of lines, and the beginning of one.
inline constexpr std::string_view kBegins = ": begins";
inline constexpr std::string_view kGoesOn = ": goes on";
inline constexpr std::string_view kCandidate = "  candidate ";
// Whether a job's log ends in the middle of a task, so that the job was killed: by a batch system,
// a preemption, somebody.
bool is_cut_off(const std::string& log);

// Submits, waits, submits again until every task is finished or broken for good, or until
// request_stop: the jobs then go on. True when nothing is left. Fails with kEnvironment, in Slurm's
// own words, when there is no Slurm, when it refuses the job, and when arrays end without progress.
Result<bool> run_on_slurm(const SuiteSettings& suite, const SlurmSettings& slurm,
                          const SlurmHears& hears);

}  // namespace kernelpro
