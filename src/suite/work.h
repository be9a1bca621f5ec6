// SPDX-License-Identifier: Apache-2.0
// Runs the tasks of a suite one after another, each as an ordinary run. Any number of processes on
// any machines may work on one DIR: each takes tasks that no other process holds (by a lock that is
// released when its process ends), resumes interrupted ones and skips finished ones.
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
  // A task is about to be started or resumed.
  std::function<void(const TaskResult&)> begin;
  // It ended, was interrupted or broke.
  std::function<void(const TaskResult&)> end;
  Observer progress;  // of the run; may be empty
};

struct WorkSettings {
  // Position among several workers, so that they begin at different tasks.
  int index = 0;
  int count = 1;
  std::string gpu;  // cuda; instead of the run settings'
};

struct WorkSummary {
  int ran = 0;     // started or resumed
  int broken = 0;  // of these
  int held = 0;    // skipped because other processes hold them
  int left = 0;    // neither finished nor broken for good
  bool interrupted = false;
};

// Works until only tasks that other processes hold are left, or until request_stop. A task that
// cannot be run is noted in its folder, and the rest still run. Fails with kStore when DIR cannot
// be written, and with the machine's error (kEnvironment) when several tasks in a row break on it.
Result<WorkSummary> work_on(const SuiteSettings& settings, const WorkSettings& work,
                            const WorkHears& hears);

}  // namespace kernelpro
