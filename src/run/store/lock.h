// SPDX-License-Identifier: Apache-2.0
// One writer per run: an exclusive flock on the file `lock` in the run directory, which holds the
// owner's process id. The OS releases it however the process ends.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

class RunLock {
 public:
  // Fails with kBusy, naming the holder's pid, when another process has it; with kStore when the
  // file cannot be created. Does not wait.
  static Result<RunLock> take(const std::string& directory);

 private:
  Fd fd_;
};

// True while any process holds the run's lock.
bool run_is_locked(const std::string& directory);

}  // namespace kernelpro
