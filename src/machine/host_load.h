// SPDX-License-Identifier: Apache-2.0
// The share of this machine's CPU time that other work takes, which disturbs measurements.
//
// Takes the larger of two sources. Per-process CPU clocks of everything in /proc are exact to the
// nanosecond, but miss processes outside this PID namespace and those that started and ended in
// between; processes that cannot run on our processors are left out. The tick counters of
// /proc/stat cover everything that ran on our processors, including time stolen by a hypervisor,
// but only to a few 10 ms ticks.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <map>
#include <vector>

#include "core/evaluation/load.h"

namespace kernelpro {

struct HostLoad {
  double wall_s = 0;
  // Others' CPU time / (wall time * hardware threads that we may use); 0..1.
  double foreign = 0;
};

// One reading of the clocks; load_between is pure, for tests.
struct LoadReading {
  double wall_s = 0;
  std::map<pid_t, double> process_s;  // CPU seconds so far
  double busy_s = 0;                  // of our processors, from ticks, including stolen time
  double stolen_s = 0;
};
// `ours`: processes whose time is not foreign. `tick_s`: error bound of `busy_s`.
HostLoad load_between(const LoadReading& from, const LoadReading& to,
                      const std::vector<pid_t>& ours, int threads, double tick_s);

// CPU seconds so far of the processes that may run on these processors.
std::map<pid_t, double> process_times(const cpu_set_t& processors);

// Of the processors that the thread which makes it may use. Not thread-safe. A reading costs about
// a microsecond per process on the machine.
class LoadMeter {
 public:
  LoadMeter();
  // Starts an interval.
  void begin();
  // The load since begin(). This process and `ours` are not foreign; this process's other children
  // (compilers, for instance) are.
  HostLoad since_begin(const std::vector<pid_t>& ours = {}) const;

 private:
  cpu_set_t processors_;
  int threads_;
  LoadReading from_;
};

}  // namespace kernelpro
