// SPDX-License-Identifier: Apache-2.0
#include "suite/work.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <thread>

#include "base/files.h"
#include "base/process/available_memory.h"
#include "base/stop.h"
#include "measure/ceilings/ceilings.h"
#include "measure/station/local.h"
#include "report/report.h"
#include "run/choices.h"
#include "run/proposers.h"
#include "run/store/lock.h"
#include "run/store/store.h"
#include "task/open/open_task.h"
#include "write/proposer.h"

namespace kernelpro {

namespace {

constexpr int kMachineFaults = 3;  // in a row before this machine is abandoned

struct Job {
  const Arm* arm;
  const SuiteTask* task;
};

bool stop_comes() {
  for (int i = 0; i < 50 && !stop_requested(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return stop_requested();
}

// If a model's server is down, the task is not at fault: the next call tries again.
Result<void> check_models_answered(const std::string& folder, const RunResult& result) {
  KP_ASSIGN(const auto store, Store::open(folder, Store::Mode::kRead));
  KP_ASSIGN(const auto calls, store->calls());
  const bool answered = std::any_of(calls.begin(), calls.end(),
                                    [](const ModelCall& call) { return !call.reply.empty(); });
  if (calls.empty() || answered) return {};
  return fail(
      ErrorKind::kEnvironment, "no model answered: " + result.stopped_by,
      "check the model's name, key and server (docs/models.md), then give the same command");
}

bool is_final(ErrorKind kind) { return kind == ErrorKind::kBadInput || kind == ErrorKind::kTask; }

class Worker {
 public:
  Worker(const SuiteSettings& settings, const WorkSettings& work, const WorkHears& hears)
      : settings_(settings), work_(work), hears_(hears) {}

  Result<WorkSummary> work() {
    for (bool progress = true; progress && !stop_requested();) {
      progress = false;
      summary_.held = 0;
      const auto jobs = ordered();
      for (std::size_t i = 0; i < jobs.size() && !stop_requested(); ++i) {
        KP_ASSIGN(auto did, take(jobs[i]));
        progress |= did;
      }
    }
    summary_.interrupted = stop_requested();
    for (const Job& job : ordered()) {
      const TaskResult result = read_result(settings_, *job.arm, *job.task);
      Breakage breakage;
      const bool broken = result.state == RunState::kBroken &&
                          read_breakage(result.directory, &breakage) && holds(breakage, *job.task);
      summary_.left += result.state != RunState::kFinished && !broken;
    }
    return summary_;
  }

 private:
  // Runs the arms of a task one after another, so that the machine is in a similar state.
  std::vector<Job> ordered() const {
    std::vector<Job> jobs;
    for (const SuiteTask& task : settings_.tasks) {
      for (const Arm& arm : settings_.arms) jobs.push_back({&arm, &task});
    }
    const std::size_t from =
        jobs.size() * static_cast<std::size_t>(work_.index) / static_cast<std::size_t>(work_.count);
    std::rotate(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(from), jobs.end());
    return jobs;
  }

  void end(const Job& job) {
    if (hears_.end) hears_.end(read_result(settings_, *job.arm, *job.task));
  }

  bool done(const Job& job, const std::string& folder) {
    Breakage breakage;
    if (read_breakage(folder, &breakage))
      return holds(breakage, *job.task) || tried_.count(folder) > 0;
    Ending ending;
    bool ended = read_ending(folder, &ending);
    if (waiting_.count(folder) > 0) return true;
    if (!ended && exists(store_path(folder))) {
      const TaskResult result = read_result(settings_, *job.arm, *job.task);
      ended = result.state == RunState::kFinished;
      if (result.state == RunState::kBroken && tried_.count(folder) > 0) return true;
    }
    return ended && (!settings_.baselines || has_baselines(folder) || tried_.count(folder) > 0);
  }

  // True when something was run.
  Result<bool> take(const Job& job) {
    const std::string folder = run_folder(settings_, *job.arm, *job.task);
    if (done(job, folder)) return false;
    // In addition to the run's lock, which is taken only after the slow opening of the task.
    const std::string claim =
        join(join(join(settings_.directory, "claims"), job.arm->name), job.task->name);
    KP_TRY(make_dirs(claim));
    const auto lock = RunLock::take(claim);
    if (!lock && lock.error().kind != ErrorKind::kBusy) {
      return tl::unexpected<Error>(lock.error());
    }
    if (!lock) {
      ++summary_.held;
      return false;
    }
    if (done(job, folder)) return false;  // by the previous lock holder
    tried_.insert(folder);
    ++summary_.ran;
    if (hears_.begin) hears_.begin(read_result(settings_, *job.arm, *job.task));
    forget_breakage(folder);
    const auto ran = run(job, folder);
    return_freed_memory();
    if (!ran && ran.error().kind == ErrorKind::kBusy) {
      ++summary_.held;
      --summary_.ran;
      end(job);
      return false;
    }
    // A signal to every process of the job also kills references and compilers, which is not the
    // task's fault: it resumes next time. Our own signal may arrive a moment later, so wait for it.
    if (!ran && stop_comes()) {
      end(job);
      return false;
    }
    if (!ran) {
      ++summary_.broken;
      KP_TRY(write_breakage(
          folder, {ran.error(), is_final(ran.error().kind), task_fingerprint(*job.task)}));
    }
    end(job);
    machine_faults_ = !ran && ran.error().kind == ErrorKind::kEnvironment ? machine_faults_ + 1 : 0;
    if (machine_faults_ == kMachineFaults) return tl::unexpected<Error>(ran.error());
    return true;
  }

  Result<void> run(const Job& job, const std::string& folder) {
    Ending ending;
    if (!read_ending(folder, &ending)) {
      const Observer observer = [&](const Progress& p) {
        if (p.event == Event::kUnconfirmed) ending.unconfirmed.push_back(p.candidate);
        if (hears_.progress) hears_.progress(p);
      };
      KP_ASSIGN(const auto result, exists(store_path(folder)) ? resume(folder, nullptr, observer)
                                                              : begin(job, folder, observer));
      if (result.end == RunEnd::kInterrupted) return {};
      ending.tried_nothing = result.end == RunEnd::kNothing && result.evaluations <= 1;
      if (result.stopped_by.starts_with(kNoReply)) {
        waiting_.insert(folder);  // until another call
        return {};
      }
      if (ending.tried_nothing) KP_TRY(check_models_answered(folder, result));
      ending.stopped_by = result.stopped_by;
      KP_TRY(write_ending(folder, ending));
      const auto page = html_report(folder);
      if (page) KP_TRY(write_file(join(folder, "report.html"), *page));
    }
    if (settings_.baselines && !has_baselines(folder)) return measure(folder);
    return {};
  }

  Result<RunResult> begin(const Job& job, const std::string& folder, const Observer& observer) {
    const bool module = is_module_path(job.task->path);
    OpenSettings open;
    open.meanwhile = measure_ceilings;
    open.precision = settings_.precision;
    open.python = settings_.python;
    open.gpu = work_.gpu.empty() ? settings_.run.gpu : work_.gpu;
    if (module) {
      open.target = choose_target(settings_.target);
    } else if (const auto target = target_from_name(settings_.target)) {
      open.target = *target;
      open.cpu_only = *target == TargetKind::kCpu;
    }
    KP_ASSIGN(auto opened, open_task(job.task->path, open));
    RunSettings run = settings_of(*job.arm, settings_.run);
    run.directory = folder;
    run.gpu = open.gpu;
    run.python = open.python;
    run.target = module ? open.target : choose_target(opened.task, settings_.target);
    if (proposer_of(run).replays) {
      run.replay_from = join(join(settings_.replay_suite, job.arm->name), job.task->name);
    }
    return optimize(opened.task, run, observer, std::move(opened.module));
  }

  // Times PyTorch itself, if the task has a Module.
  Result<void> measure(const std::string& folder) {
    KP_ASSIGN(const auto store, Store::open(folder, Store::Mode::kRead));
    KP_ASSIGN(const auto header, store->header());
    if (!header.task.module) return write_baselines(folder, {});
    StationSettings settings;
    settings.target = header.target;
    settings.python = settings_.python;
    settings.gpu = work_.gpu.empty() ? settings_.run.gpu : work_.gpu;
    settings.candidates = false;
    const Stations stations = local_stations()(header.task, settings);
    if (!stations.front()) return tl::unexpected<Error>(stations.front().error());
    KP_ASSIGN(const auto measured, (*stations.front())->baselines({}));
    return write_baselines(folder, measured);
  }

  const SuiteSettings& settings_;
  const WorkSettings& work_;
  const WorkHears& hears_;
  WorkSummary summary_;
  std::set<std::string> tried_;    // by this call: broken tasks are tried once
  std::set<std::string> waiting_;  // likewise: those whose requests nobody has answered
  int machine_faults_ = 0;
};

}  // namespace

Result<WorkSummary> work_on(const SuiteSettings& settings, const WorkSettings& work,
                            const WorkHears& hears) {
  return Worker(settings, work, hears).work();
}

}  // namespace kernelpro
