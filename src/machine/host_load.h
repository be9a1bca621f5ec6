// SPDX-License-Identifier: Apache-2.0
// How much of this machine's processor time other work takes: what disturbs a measurement, and is
// not the measured kernel's doing.
//
// Two sources, of which the larger counts. The processor clocks of all processes that /proc shows
// are exact to the nanosecond, but miss processes outside this PID namespace and those that started
// and ended in between. The tick counters of /proc/stat see everything that ran on our processors,
// time stolen by a hypervisor included, but only to a few ticks of 10 ms.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "core/load.h"

namespace kernelpro {

struct HostLoad {
  double wall_s = 0;
  // Processor time of others, over wall time times the hardware threads that we may use; 0..1.
  double foreign = 0;
};

// What turns two readings of the clocks into a load; pure, for tests.
struct LoadReading {
  double wall_s = 0;
  std::map<pid_t, double> process_s;  // processor seconds so far
  double busy_s = 0;                  // of our processors, from ticks, stolen time included
  double stolen_s = 0;
};
// `ours`: processes whose time is not foreign. `tick_s`: how far off `busy_s` may be.
HostLoad load_between(const LoadReading& from, const LoadReading& to,
                      const std::vector<pid_t>& ours, int threads, double tick_s);

// Not thread-safe. A reading takes about a microsecond per process on the machine.
class LoadMeter {
 public:
  LoadMeter();
  // Starts an interval.
  void begin();
  // The load since begin(). This process and `ours` are not foreign; this process's other children
  // (compilers, for instance) are.
  HostLoad since_begin(const std::vector<pid_t>& ours = {}) const;

 private:
  int threads_;
  LoadReading from_;
};

}  // namespace kernelpro
