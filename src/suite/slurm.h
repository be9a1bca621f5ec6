// SPDX-License-Identifier: Apache-2.0
// A suite as a Slurm job array on a shared file system: each job is one worker (suite/work.h) with
// one GPU; results are read from DIR as always. Jobs may be killed, preempted and requeued at any
// time. The launcher resubmits while tasks are left, and may itself be restarted:
// DIR/slurm/array.json names the active array.
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
  int jobs = 0;                      // per array; 0: one per task, at most 64
  std::vector<std::string> options;  // for sbatch, "--partition=gpu" or "partition=gpu"
  bool wait = true;                  // false: submit and return
  double poll_s = 5;                 // seconds between calls of squeue
};

struct SlurmHears {
  std::function<void(const std::string& sentence)> note;  // submitted, held, submitted again
  std::function<void(const TaskResult&)> end;             // a task is finished or broken
};

// The command line of sbatch; `script` is the job's file. The options --gres and --gpus replace the
// default of one GPU per job; target cpu requests none.
std::vector<std::string> sbatch_words(const SuiteSettings& suite, const SlurmSettings& slurm,
                                      int jobs, const std::string& script);

// Markers in a worker's output about its tasks: two line ends and one line start.
inline constexpr std::string_view kBegins = ": begins";
inline constexpr std::string_view kGoesOn = ": goes on";
inline constexpr std::string_view kCandidate = "  candidate ";
// Whether a job's log ends in the middle of a task, so that the job was killed (by the batch
// system, a preemption or a user).
bool is_cut_off(const std::string& log);

// Submits, waits and resubmits until every task is finished or broken for good, or until
// request_stop, which leaves the jobs running. True when nothing is left. Fails with kEnvironment
// and Slurm's message when there is no Slurm, when it refuses the job, and when arrays end without
// progress.
Result<bool> run_on_slurm(const SuiteSettings& suite, const SlurmSettings& slurm,
                          const SlurmHears& hears);

}  // namespace kernelpro
