// SPDX-License-Identifier: Apache-2.0
// Processes of this machine as /proc shows them. Snapshots: a process may be gone by the time it is
// looked at. Safe from any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace kernelpro {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  std::uint64_t start = 0;          // clock ticks since boot: tells a reused number apart
  std::int64_t resident_bytes = 0;  // shared pages count for each that has them
  std::int64_t threads = 0;
  bool zombie = false;
};

// Every process that can be seen; empty without /proc.
std::vector<ProcessInfo> all_processes();

// Children, their children and so on, as `all` has them; without `root` itself.
std::vector<ProcessInfo> descendants(const std::vector<ProcessInfo>& all, pid_t root);
std::vector<pid_t> descendants(pid_t root);

// What a process and all its descendants use together: private memory of each, and the largest of
// what each shares with others (memory shared by several is not counted several times).
struct TreeUse {
  std::int64_t resident_bytes = 0;
  std::int64_t threads = 0;
  int processes = 0;
};
// Costs in proportion to the tree where the kernel lists children, to the machine elsewhere.
// `count_root`: whether the root's own share counts.
TreeUse tree_use(pid_t root, bool count_root);

}  // namespace kernelpro
