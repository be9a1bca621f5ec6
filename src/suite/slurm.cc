// SPDX-License-Identifier: Apache-2.0
#include "suite/slurm.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/stop.h"
#include "base/text.h"
#include "core/task/task.h"

namespace kernelpro {

namespace {

constexpr int kMostJobs = 64;
constexpr int kBarrenRounds = 3;      // arrays in a row with output but no progress
constexpr int kSilentRounds = 20;     // ... or with neither
constexpr double kPatience_s = 1800;  // with a controller that does not answer
// SIGTERM 60 s before a job's time limit, so that it ends between two evaluations.
constexpr const char* kWarning = "--signal=B:TERM@60";

std::string slurm_folder(const SuiteSettings& suite) { return join(suite.directory, "slurm"); }

std::string quoted(const std::string& text) { return "'" + replace_all(text, "'", "'\\''") + "'"; }

Result<Exit> ask(std::vector<std::string> argv) {
  if (find_program(argv.front()).empty()) {
    return fail(ErrorKind::kEnvironment, "there is no " + argv.front() + " on this machine",
                "run this on a machine with Slurm's commands (Debian: apt-get install "
                "slurm-client), or leave --launcher out");
  }
  Command command;
  command.argv = std::move(argv);
  return run(command);
}

std::string dashed(const std::string& option) {
  return option.starts_with("-") ? option : "--" + option;
}

bool asks_for_gpus(const std::string& option) {
  return option.starts_with("--gres") || option.starts_with("--gpus") || option.starts_with("-G");
}

// Progress of the suite: unfinished tasks and evaluations so far. A task that waits for replies is
// left for another time: a job cannot give them.
struct Standing {
  int left = 0, waiting = 0;
  int evaluations = 0;
  bool operator==(const Standing&) const = default;
};

class Launcher {
 public:
  Launcher(const SuiteSettings& suite, const SlurmSettings& slurm, const SlurmHears& hears)
      : suite_(suite), slurm_(slurm), hears_(hears) {}

  Result<bool> launch() {
    KP_TRY(make_dirs(slurm_folder(suite_)));
    int barren = 0, silent = 0;
    for (;;) {
      const Standing before = look();
      if (before.left == 0) return before.waiting == 0;
      KP_ASSIGN(std::string array, running_array());
      if (array.empty()) {
        KP_ASSIGN(array, submit(before.left));
        note("submitted array " + array);
      } else {
        note("array " + array + " is out already");
      }
      if (!slurm_.wait) return false;
      KP_ASSIGN(const bool ended, wait_for(array));
      if (!ended) return false;
      // Jobs that end without output or in the middle of a task were killed; the suite is not at
      // fault.
      const bool progress = look() != before;
      const std::string words = progress ? "" : last_words(array);
      barren = progress ? 0 : barren + (words.empty() ? 0 : 1);
      silent = progress ? 0 : silent + 1;
      if (barren == kBarrenRounds || silent == kSilentRounds) {
        return without_progress(silent, words);
      }
    }
  }

 private:
  void note(const std::string& sentence) const {
    if (hears_.note) hears_.note(sentence);
  }

  Standing look() {
    Standing standing;
    for (const TaskResult& result : read_results(suite_)) {
      standing.evaluations += result.evaluations;
      Breakage breakage;
      const bool broken = result.state == RunState::kBroken &&
                          read_breakage(result.directory, &breakage) &&
                          holds(breakage, result.task);
      const bool done = result.state == RunState::kFinished || broken;
      (result.waits_for_replies ? standing.waiting : standing.left) += !done;
      if (done && told_.insert(result.directory).second && hears_.end) hears_.end(result);
    }
    return standing;
  }

  std::string array_file() const { return join(slurm_folder(suite_), "array.json"); }

  // The array that an earlier launcher submitted, if it is still active; "" = none.
  Result<std::string> running_array() const {
    if (!exists(array_file())) return std::string();
    const auto text = read_file(array_file(), 1 << 20);
    const Json json = text ? parse_json(*text).value_or(Json()) : Json();
    const std::string id = JsonReader(json).text("array");
    if (id.empty()) return id;
    KP_ASSIGN(const auto states, states_of(id));
    return states.empty() ? std::string() : id;
  }

  Result<std::string> submit(int left) const {
    const int jobs = std::min(left, slurm_.jobs > 0 ? slurm_.jobs : kMostJobs);
    const std::string script = join(slurm_folder(suite_), "job.sh");
    // exec, so that Slurm's signals reach the worker itself.
    KP_TRY(write_file(script, "#!/bin/sh\nexec " + quoted(join(executable_dir(), "kernelpro")) +
                                  " bench --out " + quoted(suite_.directory) +
                                  " --worker \"$SLURM_ARRAY_TASK_ID/" + std::to_string(jobs) +
                                  "\"\n"));
    KP_ASSIGN(const auto exit, ask(sbatch_words(suite_, slurm_, jobs, script)));
    const std::string said(trim(exit.output));
    if (!exit.ok()) {
      return fail(ErrorKind::kEnvironment, "Slurm refused the job: " + said,
                  "change the request with --slurm-option, or check Slurm, then run the same "
                  "command again");
    }
    const std::string id = said.substr(0, said.find(';'));
    KP_TRY(write_file(array_file(), dump_json(Json{{"array", id}, {"jobs", jobs}}) + "\n"));
    return id;
  }

  // States of the array's unfinished jobs, with squeue's reason; empty: the array has ended.
  Result<std::vector<std::string>> states_of(const std::string& id) const {
    double since = 0;
    for (;;) {
      KP_ASSIGN(const auto exit,
                ask({"squeue", "--noheader", "--array", "--jobs=" + id, "--format=%T %r"}));
      if (exit.ok()) {
        std::vector<std::string> states;
        for (const std::string& line : lines(exit.output)) {
          if (!trim(line).empty()) states.push_back(line);
        }
        return states;
      }
      if (contains(exit.output, "Invalid job id")) return std::vector<std::string>();
      const double now = real_clock().now_s();
      if (since == 0) since = now;
      if (now - since > kPatience_s || stop_requested()) {
        return fail(ErrorKind::kEnvironment,
                    "squeue does not answer: " + std::string(trim(exit.output)),
                    "the jobs continue without it; run the same command again later");
      }
      pause();
    }
  }

  void pause() const {
    for (double left = slurm_.poll_s; left > 0 && !stop_requested(); left -= 0.2) {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, 0.2)));
    }
  }

  // False: a stop was requested.
  Result<bool> wait_for(const std::string& id) {
    bool held = false;
    while (!stop_requested()) {
      KP_ASSIGN(const auto states, states_of(id));
      look();
      if (states.empty()) return true;
      for (const std::string& state : states) {
        if (held || !contains(state, "held") || !contains(state, "PENDING")) continue;
        held = true;
        note("Slurm holds a job (" + std::string(trim(state)) + "); scontrol release " + id +
             " lets it go");
      }
      pause();
    }
    note("array " + id + " keeps running; scancel " + id + " ends it");
    return false;
  }

  // The last output of some job of an array; "" = none.
  std::string last_words(const std::string& id) const {
    std::string last;
    const std::string folder = slurm_folder(suite_);
    for (const std::string& name : list_dir(folder)) {
      if (!name.starts_with(id + "_")) continue;
      const auto text = read_file(join(folder, name), 64 << 20);
      if (text && !trim(*text).empty() && !is_cut_off(*text)) last = *text;
    }
    if (last.size() > 600) last = last.substr(last.size() - 600);
    return std::string(trim(last));
  }

  Result<bool> without_progress(int rounds, const std::string& words) const {
    return fail(
        ErrorKind::kEnvironment,
        std::to_string(rounds) + " arrays in a row ended without an evaluation; " +
            (words.empty() ? "their jobs printed nothing" : "a job's last words: " + words),
        "read the jobs' output in " + slurm_folder(suite_) + ", and give the same command again");
  }

  const SuiteSettings& suite_;
  const SlurmSettings& slurm_;
  const SlurmHears& hears_;
  std::set<std::string> told_;
};

}  // namespace

bool is_cut_off(const std::string& log) {
  std::vector<std::string> all = lines(trim(log));
  while (!all.empty() && contains(all.back(), " CANCELLED ")) all.pop_back();  // Slurm's message
  if (all.empty()) return !trim(log).empty();
  const std::string& last = all.back();
  return last.ends_with(kBegins) || last.ends_with(kGoesOn) || last.starts_with(kCandidate);
}

std::vector<std::string> sbatch_words(const SuiteSettings& suite, const SlurmSettings& slurm,
                                      int jobs, const std::string& script) {
  std::vector<std::string> words = {"sbatch",
                                    "--parsable",
                                    "--job-name=kernelpro",
                                    "--array=0-" + std::to_string(jobs - 1),
                                    "--requeue",
                                    "--open-mode=append",
                                    "--output=" + join(slurm_folder(suite), "%A_%a.log"),
                                    "--chdir=" + suite.directory,
                                    kWarning};
  bool gpus = false;
  for (const std::string& option : slurm.options) gpus |= asks_for_gpus(dashed(option));
  if (!gpus && target_from_name(suite.target) != TargetKind::kCpu) words.push_back("--gres=gpu:1");
  for (const std::string& option : slurm.options) words.push_back(dashed(option));
  words.push_back(script);
  return words;
}

Result<bool> run_on_slurm(const SuiteSettings& suite, const SlurmSettings& slurm,
                          const SlurmHears& hears) {
  return Launcher(suite, slurm, hears).launch();
}

}  // namespace kernelpro
