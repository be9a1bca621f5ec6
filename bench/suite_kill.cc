// SPDX-License-Identifier: Apache-2.0
// Random kills of suites that run as Slurm job arrays, on a real Slurm cluster that this program
// starts.
//   bench_suite_kill [KILLS] [SEED] [SECONDS]
// After SECONDS the kills stop, and the running suite finishes.
// `kernelpro bench --launcher slurm` (the program beside this one) runs small tasks for the cpu
// target. At random moments a worker is killed, terminated, requeued or cancelled by Slurm, or the
// launcher is killed and restarted. Every evaluation that was read from a store or reported in a
// job's log must be in the store at the end, unchanged and once. Then each run's decisions are
// repeated without kills, with the recorded evaluations in place of compiler, evaluator and
// profiler: the candidates must be the same, in the same order.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "base/clock.h"
#include "measure/station/target.h"
#include "run/launch.h"
#include "run/store/lock.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "suite/results.h"
#include "suite/slurm_testing.h"
#include "suite/testing.h"

namespace {

using namespace kernelpro;
using testing::SlurmCluster;

constexpr int kTasks = 4;
constexpr const char* kEvaluations = "12";

struct Tally {
  std::map<std::string, int> kills;
  int suites = 0, runs = 0, unfinished = 0, launches = 0;
  std::size_t evaluated = 0, logged = 0, decisions = 0;
  int lost = 0, changed = 0, twice = 0, corrupt = 0, different = 0, unexpected = 0;
  int killed() const {
    int sum = 0;
    for (const auto& [kind, count] : kills) sum += count;
    return sum;
  }
};

// Fingerprints of a store's evaluated candidates.
using Seen = std::map<std::string, std::map<std::int64_t, std::string>>;  // run folder, id

std::string fingerprint(const StoredCandidate& each) {
  return each.known.candidate.content_hash() + " " + std::to_string(each.order) + " " +
         evaluation_to_json(each.known.evaluation);
}

std::vector<std::string> run_folders(const std::string& out) {
  std::vector<std::string> folders;
  for (const std::string& arm : list_dir(out)) {
    if (!arm.starts_with("seed=")) continue;
    for (const std::string& task : list_dir(join(out, arm))) {
      if (exists(store_path(join(join(out, arm), task)))) {
        folders.push_back(join(join(out, arm), task));
      }
    }
  }
  return folders;
}

// Reads all stores; everything seen before must still be there.
void look(const std::string& out, Seen* seen, Tally* tally) {
  for (const std::string& folder : run_folders(out)) {
    const auto store = Store::open(folder, Store::Mode::kRead);
    const auto all =
        store ? (*store)->candidates()
              : Result<std::vector<StoredCandidate>>(tl::unexpected<Error>(store.error()));
    if (!all) {
      ++tally->corrupt;
      std::fprintf(stderr, "%s\n", all.error().text().c_str());
      continue;
    }
    std::map<std::int64_t, std::string> now;
    for (const StoredCandidate& each : *all) {
      if (each.evaluated) now[each.known.id] = fingerprint(each);
    }
    for (const auto& [id, before] : (*seen)[folder]) {
      tally->lost += now.count(id) == 0;
      tally->changed += now.count(id) > 0 && now[id] != before;
    }
    (*seen)[folder] = std::move(now);
  }
}

// The jobs' logs: each line "  candidate N: ..." was printed after its commit.
void read_logs(const std::string& out, const Seen& seen, Tally* tally) {
  std::map<std::string, std::multiset<std::int64_t>> reported;
  for (const std::string& name : list_dir(join(out, "slurm"))) {
    const auto log = read_file(join(join(out, "slurm"), name));
    if (!name.ends_with(".log") || !log) continue;
    std::string folder;
    for (const std::string& line : lines(*log)) {
      const std::vector<std::string> parts = words(line);
      const bool begins = line.ends_with(": begins") || line.ends_with(": goes on");
      if (begins && parts.size() >= 2) {
        folder = join(join(out, parts[0]), parts[1].substr(0, parts[1].size() - 1));
      } else if (line.starts_with("  candidate ") && parts.size() == 3) {
        reported[folder].insert(std::atoll(parts[1].c_str()));
      }
    }
  }
  for (const auto& [folder, ids] : reported) {
    tally->logged += ids.size();
    const auto stored = seen.find(folder);
    for (auto it = ids.begin(); it != ids.end(); it = ids.upper_bound(*it)) {
      tally->lost += stored == seen.end() || stored->second.count(*it) == 0;
      tally->twice += static_cast<int>(ids.count(*it)) - 1;
    }
  }
}

// Recorded evaluations in place of compiler, evaluator and profiler.
using Records = std::map<std::string, const StoredCandidate*>;  // by content hash

class RecordedCompiler : public Compiler {
 public:
  explicit RecordedCompiler(const Records& records) : records_(records) {}
  CompileResult compile(const Task&, const Case& c, const Candidate& candidate) override {
    const auto found = records_.find(candidate.content_hash());
    if (found == records_.end()) return CompileError{"it was never evaluated"};
    const Outcome& outcome = found->second->known.evaluation.outcome;
    if (const auto* error = std::get_if<CompileError>(&outcome)) return *error;
    Binary binary;
    binary.case_name = c.name;
    binary.hash = candidate.content_hash();
    binary.shared_object = binary.hash;
    return binary;
  }
  CompileResult compile_reference(const Task&, const Case&) override { return Binary{}; }
  std::string describe() const override { return "recorded"; }

 private:
  const Records& records_;
};

class RecordedEvaluator : public Evaluator {
 public:
  explicit RecordedEvaluator(const Records& records) : records_(records) {}
  Result<void> prepare(const References&) override { return {}; }
  Result<Evaluation> evaluate(const Subject& subject, const Subject* incumbent) override {
    const Evaluation& evaluation = records_.at(subject.hash)->known.evaluation;
    const Correct* correct = evaluation.correct();
    if (correct != nullptr && correct->versus &&
        (incumbent == nullptr || incumbent->hash != correct->versus->incumbent)) {
      return fail(ErrorKind::kInternal, "it met another incumbent", "");
    }
    return evaluation;
  }
  Result<Evaluation> confirm(const Subject& subject, const Subject&) override {
    return records_.at(subject.hash)->known.evaluation;
  }

 private:
  const Records& records_;
};

// Repeats a run's decisions; adds the number that agree to the tally.
void decide_again(const std::string& folder, const std::string& scratch, Tally* tally) {
  const auto store = Store::open(folder, Store::Mode::kRead);
  if (!store) return;
  const auto header = (*store)->header();
  const auto recorded = (*store)->candidates();
  if (!header || !recorded) return;
  Records records;
  std::map<std::int64_t, std::string> order;
  for (const StoredCandidate& each : *recorded) {
    if (!each.evaluated) continue;
    records[each.known.candidate.content_hash()] = &each;
    order[each.order] = each.known.candidate.content_hash();
  }
  RunSettings settings = settings_from_json(header->settings_json).value_or(RunSettings());
  settings.directory = scratch;
  settings.max_seconds = 1e9;
  const TargetMaker maker = [&](const Task&, const StationSettings&) -> Result<Target> {
    Target target;
    target.machine = std::make_unique<Machine>(header->machine);
    target.compiler = std::make_shared<RecordedCompiler>(records);
    target.evaluator = std::make_unique<RecordedEvaluator>(records);
    target.collect = [&](const Task&, const Case&, const Machine&, const Binary& binary,
                         const Evaluation&,
                         const CallFacts&) { return records.at(binary.hash)->evidence; };
    return target;
  };
  const auto again = optimize_with(local_stations(maker), header->task, settings, nullptr);
  if (!again) {
    ++tally->different;
    std::fprintf(stderr, "%s: %s\n", folder.c_str(), again.error().text().c_str());
    return;
  }
  const auto made = Store::open(scratch, Store::Mode::kRead);
  std::map<std::int64_t, std::string> now;
  const auto repeated = (*made)->candidates();
  for (const StoredCandidate& each : *repeated) {
    if (each.evaluated) now[each.order] = each.known.candidate.content_hash();
  }
  for (const auto& [at, hash] : order) {
    const bool same = now.count(at) > 0 && now[at] == hash;
    tally->decisions += same;
    tally->different += !same;
  }
  tally->different += now.size() != order.size();
}

pid_t launch(const std::vector<std::string>& argv, const std::string& log) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::freopen(log.c_str(), "a", stdout) == nullptr) ::_exit(126);
  ::dup2(1, 2);
  ::execv(args[0], args.data());
  ::_exit(127);
}

// Processes that currently hold a task of the suite.
std::vector<pid_t> workers(const std::string& out) {
  std::set<pid_t> pids;
  const std::string claims = join(out, "claims");
  for (const std::string& arm : list_dir(claims)) {
    for (const std::string& task : list_dir(join(claims, arm))) {
      const std::string claim = join(join(claims, arm), task);
      if (!run_is_locked(claim)) continue;
      const auto text = read_file(join(claim, "lock"), 100);
      const std::string pid(trim(text.value_or("")));
      if (!pid.empty() && exists("/proc/" + pid)) pids.insert(std::atoi(pid.c_str()));
    }
  }
  return {pids.begin(), pids.end()};
}

template <class T>
const T& pick(const std::vector<T>& from, std::mt19937* random) {
  return from[(*random)() % from.size()];
}

// Performs one random kill; returns its name, "" when there was no process to kill.
std::string kill_something(const std::string& out, pid_t launcher, std::mt19937* random) {
  const auto dice = (*random)() % 100;
  if (dice < 6) {
    ::kill(launcher, SIGKILL);
    return "launcher killed";
  }
  if (dice < 30) {
    const std::vector<std::string> jobs =
        lines(SlurmCluster::output({"squeue", "--noheader", "--states=RUNNING", "--format=%i"}));
    if (jobs.empty() || jobs.front().empty()) return "";
    const bool requeue = dice < 18;
    const std::string job(trim(pick(jobs, random)));
    SlurmCluster::output(requeue ? std::vector<std::string>{"scontrol", "requeue", job}
                                 : std::vector<std::string>{"scancel", job});
    return requeue ? "requeued" : "cancelled";
  }
  const std::vector<pid_t> pids = workers(out);
  if (pids.empty()) return "";
  const bool kindly = dice < 40;
  if (::kill(pick(pids, random), kindly ? SIGTERM : SIGKILL) != 0) return "";
  return kindly ? "SIGTERM" : "SIGKILL";
}

void finish_suite(const std::string& out, Seen* seen, Tally* tally) {
  look(out, seen, tally);
  read_logs(out, *seen, tally);
  const auto settings = read_suite(out);
  if (!settings) return;
  for (const TaskResult& result : read_results(*settings)) {
    ++tally->runs;
    if (result.state == RunState::kFinished) continue;
    ++tally->unfinished;
    std::fprintf(stderr, "%s %s is %s: %s\n", result.arm.c_str(), result.task.name.c_str(),
                 std::string(run_state_name(result.state)).c_str(), result.reason.c_str());
  }
  for (const auto& [folder, rows] : *seen) {
    const TempDir scratch;
    tally->evaluated += rows.size();
    decide_again(folder, join(scratch.path(), "run"), tally);
  }
}

void print(const Tally& t) {
  std::printf("| kills |");
  for (const auto& [kind, count] : t.kills) std::printf(" %s |", kind.c_str());
  std::printf(
      " launches | suites | runs | not ended | evaluated | lost | changed | reported twice | "
      "corrupt "
      "stores | decisions made again | different |\n|---|");
  for (std::size_t i = 0; i < t.kills.size(); ++i) std::printf("---|");
  std::printf("---|---|---|---|---|---|---|---|---|---|---|\n| %d |", t.killed());
  for (const auto& [kind, count] : t.kills) std::printf(" %d |", count);
  std::printf(" %d | %d | %d | %d | %zu | %d | %d | %d | %d | %zu | %d |\n", t.launches, t.suites,
              t.runs, t.unfinished, t.evaluated, t.lost, t.changed, t.twice, t.corrupt, t.decisions,
              t.different);
  std::printf("(%zu evaluations were reported in jobs' logs)\n", t.logged);
}

}  // namespace

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 200;
  std::mt19937 random(static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 1));
  const double deadline = real_clock().now_s() + (argc > 3 ? std::atof(argv[3]) : 1e9);
  std::uniform_real_distribution<double> pause(0.05, 0.7);
  if (const std::string why = SlurmCluster::missing(); !why.empty()) {
    std::fprintf(stderr, "bench_suite_kill: %s\n", why.c_str());
    return 3;
  }
  const SlurmCluster cluster;
  const TempDir folder;
  const std::string tasks = join(folder.path(), "tasks");
  for (int i = 2; i < 2 + kTasks; ++i) {
    if (!testing::write_scale_task(join(tasks, "times" + std::to_string(i)), i)) return 3;
  }
  if (!cluster.up()) {
    std::fprintf(stderr, "bench_suite_kill: Slurm did not start:\n%s\n", cluster.why().c_str());
    return 3;
  }
  Tally tally;
  const std::string log = join(folder.path(), "launcher.log");
  const auto more = [&] { return tally.killed() < wanted && real_clock().now_s() < deadline; };
  while (more() && tally.unexpected == 0) {
    const std::string out = join(folder.path(), "out" + std::to_string(++tally.suites));
    const std::vector<std::string> command = {join(executable_dir(), "kernelpro"),
                                              "bench",
                                              tasks,
                                              "--out",
                                              out,
                                              "--target",
                                              "cpu",
                                              "--arms",
                                              "seed=1,2",
                                              "--evaluations",
                                              kEvaluations,
                                              "--near-ceiling",
                                              "0",
                                              "--launcher",
                                              "slurm",
                                              "--jobs",
                                              "4",
                                              "--poll",
                                              "0.3",
                                              "--slurm-option",
                                              "gres=gpu:1"};
    Seen seen;
    for (bool done = false; !done && tally.unexpected == 0;) {
      const pid_t launcher = launch(command, log);
      ++tally.launches;
      int status = 0;
      for (bool running = true; running;) {
        ::usleep(static_cast<useconds_t>(1e6 * pause(random)));
        if (more()) {
          const std::string kind = kill_something(out, launcher, &random);
          if (!kind.empty()) ++tally.kills[kind];
        }
        look(out, &seen, &tally);
        running = ::waitpid(launcher, &status, WNOHANG) == 0;
      }
      done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      tally.unexpected += WIFEXITED(status) && WEXITSTATUS(status) != 0;
    }
    finish_suite(out, &seen, &tally);
    std::fprintf(stderr, "%d kills, %d suites\n", tally.killed(), tally.suites);
  }
  print(tally);
  if (tally.unexpected != 0) {
    std::fprintf(stderr, "bench_suite_kill: a launcher gave up:\n%s\n",
                 read_file(log).value_or("").c_str());
  }
  const int faults = tally.unfinished + tally.lost + tally.changed + tally.twice + tally.corrupt +
                     tally.different + tally.unexpected;
  return faults == 0 ? 0 : 1;
}
