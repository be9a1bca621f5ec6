// SPDX-License-Identifier: Apache-2.0
// Processes of this machine, from /proc. Snapshots: a process may be gone by the time you look at
// it. Safe from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace kernelpro {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  std::uint64_t start = 0;          // clock ticks since boot: detects a reused pid
  std::int64_t resident_bytes = 0;  // a shared page counts for every process that maps it
  std::int64_t threads = 0;
  bool zombie = false;
};

// The processor that a process's first thread, or any thread by its own id, last ran on. -1: not
// known.
int last_processor(pid_t thread);

// Every visible process; empty without /proc.
std::vector<ProcessInfo> all_processes();

// Processor time that these have used, with those of their children that have ended and were waited
// for. Those that are gone count nothing.
double processor_seconds(const std::vector<pid_t>& pids);

// Children, grandchildren and so on in `all`, without `root` itself.
std::vector<ProcessInfo> descendants(const std::vector<ProcessInfo>& all, pid_t root);
std::vector<pid_t> descendants(pid_t root);

// Combined use of a process and all its descendants: each one's private memory, plus the largest
// shared amount of any one (so shared memory is not counted several times).
struct TreeUse {
  std::int64_t resident_bytes = 0;
  std::int64_t threads = 0;
  int processes = 0;
};
// The cost scales with the tree where the kernel lists children, else with the machine.
// `count_root`: include the root's own share.
TreeUse tree_use(pid_t root, bool count_root);

}  // namespace kernelpro
