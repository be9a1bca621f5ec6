// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of a suite, one after the other, each as an ordinary run. Any number of processes
// on any machines may work on one DIR: each takes what no other holds (a lock that its process's
// end releases), goes on with what was cut off, and leaves what is finished.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/stop.h"
#include "run/run.h"
#include "suite/results.h"
#include "suite/settings.h"

namespace kernelpro {

struct WorkHears {
  // A task is about to be run, or gone on with.
  std::function<void(const TaskResult&)> begin;
  // It ended, was interrupted or broke.
  std::function<void(const TaskResult&)> end;
  Observer progress;  // of the run; may be empty
};

struct WorkSettings {
  // Of several workers, so that they begin in different places.
  int index = 0;
  int count = 1;
  std::string gpu;  // cuda; instead of the run settings'
};

struct WorkSummary {
  int ran = 0;     // begun or gone on with
  int broken = 0;  // of these
  int held = 0;    // left to other processes that hold them
  int left = 0;    // neither finished nor broken for good
  bool interrupted = false;
};

// Works until nothing is left that others do not hold, or until request_stop. A task that cannot be
// run is noted in its folder, and the rest runs. Fails with kStore when DIR cannot be written, and
// with the machine's own error when several tasks in a row break for its sake (kEnvironment).
Result<WorkSummary> work_on(const SuiteSettings& settings, const WorkSettings& work,
                            const WorkHears& hears);

}  // namespace kernelpro
