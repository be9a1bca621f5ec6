// SPDX-License-Identifier: Apache-2.0
// Hardware counters of another process, through perf_event_open, where the kernel and the (virtual)
// machine allow it. Counts all threads of the process while this object lives.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/files.h"

namespace kernelpro {

struct PerfCounts {
  double instructions = 0;
  double cycles = 0;
  double cache_misses = 0;
  bool has_misses = false;
};

class PerfEvents {
 public:
  explicit PerfEvents(pid_t pid);
  // Whether instructions and cycles are counted.
  bool available() const { return available_; }
  PerfCounts read() const;

 private:
  struct Counter {
    Fd fd;
    int which = 0;
  };
  std::vector<Counter> counters_;  // per thread and event
  bool available_ = false;
};

}  // namespace kernelpro
