// SPDX-License-Identifier: Apache-2.0
// How the Python processes that run a task's file (references, baselines) are confined. Such a
// process may read the system, Python and PyTorch, the GPU's devices and the file's own folder
// (unless that is a home or holds homes); it writes only a scratch folder, which is also its home
// and is removed with this value. It has no network, no environment but a few named variables
// without secrets, and limits on memory, processes and files, which hold between commands too.
// Whatever it starts ends with it. What the kernel cannot enforce, `kernelpro doctor` lists.
//
// The user loosens it with these variables:
//   KERNELPRO_MODULE_READ     more files and folders to read, separated by colons
//   KERNELPRO_MODULE_MEMORY   gigabytes
//   KERNELPRO_MODULE_SECONDS  for one command
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "core/task/task.h"

namespace kernelpro {

struct ModuleProcessSettings {
  std::string role;    // "reference", "baseline"
  std::string python;  // interpreter; "" = $KERNELPRO_PYTHON, else python3
  TargetKind target = TargetKind::kCuda;
  std::string gpu;                // CUDA_VISIBLE_DEVICES; "" inherits it
  std::string folder;             // of the task's file; "" if it came without one
  std::int64_t memory_bytes = 0;  // 0: KERNELPRO_MODULE_MEMORY, else a share of what is available
};

struct ModuleProcess {
  Command command;
  std::unique_ptr<TempDir> scratch;  // must outlive the process
};

// Fails with kEnvironment without a usable Python, with kBadInput for a variable that is no number.
Result<ModuleProcess> module_process(const ModuleProcessSettings& settings);

// KERNELPRO_MODULE_SECONDS, else `otherwise`.
Result<double> module_seconds(double otherwise);

// What to do about a process that was ended for a limit; "" for any other end.
std::string module_limit_advice(Exit::Kind kind);

}  // namespace kernelpro
