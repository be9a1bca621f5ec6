// SPDX-License-Identifier: Apache-2.0
// Sends SIGKILL at random moments of a real run, then resumes it, until the run is done or has been
// killed often enough.
//   bench_kill [KILLS] [SEED]
// Runs `kernelpro optimize` and `kernelpro resume` (the program beside this one) with --json on a
// tiny task on the cpu target. A line {"event":"evaluated",...} is printed after its commit, so
// each one read here must stay in the store. Prints a table; exit status 1 when an evaluated
// candidate was lost, one was evaluated twice, or a store was damaged.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "core/testing/toy_task.h"
#include "run/store/store.h"

namespace {

using namespace kernelpro;

struct Tally {
  int kills = 0;
  int sittings = 0;
  int runs = 0;
  std::size_t evaluated = 0;
  int lost = 0;
  int twice = 0;
  int corrupt = 0;
  int unexpected = 0;  // sittings that ended with an error without being killed
};

// Output of one run so far.
struct Run {
  std::string directory;
  std::multiset<std::int64_t> acknowledged;
};

void read_lines(std::string* buffer, Run* run) {
  for (std::size_t end; (end = buffer->find('\n')) != std::string::npos;
       buffer->erase(0, end + 1)) {
    const auto line = nlohmann::json::parse(buffer->substr(0, end), nullptr, false);
    if (!line.is_object() || line.value("event", "") != "evaluated") continue;
    run->acknowledged.insert(line.value("candidate", std::int64_t{0}));
  }
}

// Starts one sitting, kills it after `seconds`; returns its wait status.
int sitting(const std::vector<std::string>& argv, double seconds, Run* run) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[1], 1);
    ::execv(args[0], args.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  Fd out(ends[0]);
  std::string buffer;
  const double deadline = real_clock().now_s() + seconds;
  bool killed = false;
  for (;;) {
    const double left = deadline - real_clock().now_s();
    if (left <= 0 && !killed) {
      ::kill(child, SIGKILL);
      killed = true;
    }
    pollfd ready{out.get(), POLLIN, 0};
    if (::poll(&ready, 1, killed ? -1 : std::max(1, static_cast<int>(left * 1000))) <= 0) continue;
    char bytes[8192];
    const ssize_t n = ::read(out.get(), bytes, sizeof bytes);
    if (n <= 0) break;
    buffer.append(bytes, static_cast<std::size_t>(n));
    read_lines(&buffer, run);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

bool intact(const std::string& directory) {
  sqlite3* db = nullptr;
  std::string verdict;
  if (sqlite3_open(store_path(directory).c_str(), &db) == SQLITE_OK) {
    const auto first = [](void* out, int, char** values, char**) {
      *static_cast<std::string*>(out) = values[0];
      return 0;
    };
    sqlite3_exec(db, "PRAGMA integrity_check", first, &verdict, nullptr);
  }
  sqlite3_close(db);
  return verdict == "ok";
}

// Compares the printed evaluations with the store; returns the number in the store.
std::size_t check(const Run& run, Tally* tally) {
  if (!exists(store_path(run.directory))) return 0;
  const auto store = Store::open(run.directory, Store::Mode::kRead);
  const auto all = store
                       ? (*store)->candidates()
                       : Result<std::vector<StoredCandidate>>(tl::unexpected<Error>(store.error()));
  if (!all || !intact(run.directory)) {
    ++tally->corrupt;
    if (!all) std::fprintf(stderr, "%s\n", all.error().text().c_str());
    return 0;
  }
  std::set<std::int64_t> stored;
  for (const StoredCandidate& each : *all) {
    if (each.evaluated) stored.insert(each.known.id);
  }
  for (auto it = run.acknowledged.begin(); it != run.acknowledged.end();
       it = run.acknowledged.upper_bound(*it)) {
    if (stored.count(*it) == 0) ++tally->lost;
    tally->twice += static_cast<int>(run.acknowledged.count(*it)) - 1;
  }
  return stored.size();
}

void print(const Tally& t) {
  std::printf(
      "| kills | sittings | runs | evaluated | lost | evaluated twice | corrupt stores |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  std::printf("| %d | %d | %d | %zu | %d | %d | %d |\n", t.kills, t.sittings, t.runs, t.evaluated,
              t.lost, t.twice, t.corrupt);
}

}  // namespace

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 50;
  std::mt19937 random(static_cast<unsigned>(argc > 2 ? std::atoi(argv[2]) : 1));
  std::uniform_real_distribution<double> seconds(0.05, 2.0);
  const std::string program = join(executable_dir(), "kernelpro");
  TempDir folder;
  const std::string task = join(folder.path(), "task");
  if (!testing::write_toy_task(task, {{"small", 1000, "timed"}}, 2,
                               testing::toy_knobbed_kernel()) ||
      !exists(program)) {
    std::fprintf(stderr, "bench_kill: cannot set up beside %s\n", program.c_str());
    return 3;
  }
  Tally tally;
  Run run;
  bool done = true;
  while (tally.kills < wanted && tally.unexpected == 0 && tally.sittings < 20 * wanted) {
    if (done) {
      tally.evaluated += check(run, &tally);
      run = {join(folder.path(), "run" + std::to_string(++tally.runs)), {}};
      done = false;
    }
    std::vector<std::string> command = {program, "resume", run.directory, "--json"};
    if (!exists(store_path(run.directory))) {
      command = {program,       "optimize",      task, "--target",       "cpu", "--run",
                 run.directory, "--evaluations", "60", "--near-ceiling", "0",   "--json"};
    }
    const int status = sitting(command, seconds(random), &run);
    ++tally.sittings;
    tally.kills += WIFSIGNALED(status);
    if (WIFEXITED(status)) {
      done = true;
      tally.unexpected += WEXITSTATUS(status) != 0;
    } else {
      check(run, &tally);
    }
  }
  tally.evaluated += check(run, &tally);
  print(tally);
  if (tally.unexpected != 0) std::fprintf(stderr, "bench_kill: a sitting ended with an error\n");
  return tally.lost + tally.twice + tally.corrupt + tally.unexpected == 0 ? 0 : 1;
}
