// SPDX-License-Identifier: Apache-2.0
// A small process between us and a child that may start programs. Whatever the child starts,
// however it detaches (setsid, double fork), becomes the warden's child when its parents are gone
// (PR_SET_CHILD_SUBREAPER). The warden kills it all when the child ends, on SIGTERM, and when we
// are gone. Used by base/process/subprocess.cc only.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace kernelpro {

// What the warden reports about the child, through its pipe, before it exits.
struct WardenReport {
  int status = 0;  // as from wait()
  double cpu_seconds = 0;
  std::int64_t max_rss_bytes = 0;
};

// Call in a process just forked from `supervisor`. Forks again: returns in the child, with its
// parent's pid; never returns in the warden. `report`: the write end of a pipe. Async-signal-safe.
pid_t enter_warden(pid_t supervisor, int report);

}  // namespace kernelpro
