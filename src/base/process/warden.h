// SPDX-License-Identifier: Apache-2.0
// A small process between us and a child that may start programs. Whatever the child starts,
// however it detaches itself (setsid, forking twice), belongs to the warden when its parents are
// gone (PR_SET_CHILD_SUBREAPER), and is ended by it when the child has ended, when it is told to
// (SIGTERM), and when we are gone. Used by base/process/subprocess.cc only.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace kernelpro {

// What the warden tells about the child, in its report pipe, before it leaves.
struct WardenReport {
  int status = 0;  // as wait gives it
  double cpu_seconds = 0;
  std::int64_t max_rss_bytes = 0;
};

// Called in a process that was just forked from `supervisor`: forks again and returns in the child,
// whose parent's number it gives; stays in the warden and never returns there. `report`: the
// writing end of a pipe. Async-signal-safe.
pid_t enter_warden(pid_t supervisor, int report);

}  // namespace kernelpro
