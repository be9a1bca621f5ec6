// SPDX-License-Identifier: Apache-2.0
// One writer per run: an exclusive flock on the file `lock` in the run directory, with the holder's
// process id written inside. The kernel drops it when the process ends, however it ends.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

class RunLock {
 public:
  // Fails with kBusy, naming the holder's pid, when another process has it; with kStore when the
  // file cannot be made. Does not wait.
  static Result<RunLock> take(const std::string& directory);

 private:
  Fd fd_;
};

// True when some process holds the run's lock now.
bool run_is_locked(const std::string& directory);

}  // namespace kernelpro
