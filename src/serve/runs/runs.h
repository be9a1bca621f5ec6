// SPDX-License-Identifier: Apache-2.0
// The runs and suites below a folder, whether one of them changed, and the processes that run them.
// Nothing here takes a lock that a runner could meet: a change is seen in the file's header, and a
// holder through /proc. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct FoundRun {
  std::string id;    // in addresses: run_address(path)
  std::string name;  // the path below the folder
  std::string path;
};
struct FoundRuns {
  std::vector<FoundRun> runs;    // the latest change first
  std::vector<FoundRun> suites;  // folders that `kernelpro bench` writes
};
// Looks a few levels deep, which is where suites keep their runs.
FoundRuns find_runs(const std::string& folder);
// A run's name in addresses, from its absolute path. Says nothing about the path.
std::string run_address(const std::string& path);

// Differs after every commit. SQLite counts commits in the header of the file; reading these bytes
// takes no lock, and what they count is read later, under SQLite's own.
struct RunStamp {
  std::uint32_t commits = 0;
  std::int64_t size = -1;  // -1: there is no store
  std::int64_t changed_ns = 0;
  bool operator==(const RunStamp&) const = default;
};
RunStamp run_stamp(const std::string& path);

// The process of this machine that holds the run's lock.
struct RunHolder {
  pid_t pid = 0;
  std::string command;  // "optimize", "mcp"; "": unknown
};
std::optional<RunHolder> run_holder(const std::string& path);
// "running", "finished" or "stopped", as far as this machine knows.
std::string run_state(const std::string& path, bool finished);

// As Ctrl+C at the run's terminal. Fails with kBusy when no process of this machine holds the run,
// or when the holder does more than this run (a server, a suite).
Result<void> stop_run(const std::string& path);
// Starts `kernelpro ARGUMENT...` as a session of its own, which outlives this process; what it
// prints goes to `log`, from its beginning. The caller waits for it (waitpid). Fails with
// kEnvironment.
Result<pid_t> start_runner(const std::vector<std::string>& arguments, const std::string& log);
// Starts `kernelpro resume`; its log is the file resume.log of the run. Fails with kBusy when the
// run is held, with kEnvironment when the process cannot be started.
Result<pid_t> resume_run(const std::string& path);

}  // namespace kernelpro
