// SPDX-License-Identifier: Apache-2.0
// Opens a task by path: a folder with task.toml, or a PyTorch file with `Model`, `get_inputs` and
// `get_init_inputs`. For a PyTorch file it starts a reference process, has it describe the module,
// and returns it running.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

struct OpenSettings {
  TargetKind target = TargetKind::kCpu;
  bool cpu_only = false;  // nothing runs on a GPU: cases for one need no reference there
  // Replaces integers at the top of a PyTorch file; kBadInput for a folder.
  std::map<std::string, std::int64_t> dims;
  // Overrides the task's precision contract. fp16 and bf16 cast a module's fp32 tensors.
  std::optional<Precision> precision;
  std::string start;       // file with a starting kernel that replaces the task's; "" = none
  std::string gpu;         // cuda: UUID or index; "" the first
  std::string python;      // interpreter; "" = the default one
  double timeout_s = 120;  // for one command to the reference
  // Called on another thread while PyTorch is imported, which takes seconds; may be empty.
  std::function<void(TargetKind)> meanwhile;
  double memory_bytes = 0;  // limit for the task's largest case; 0: the machine's memory
};

struct OpenedTask {
  Task task;
  std::unique_ptr<ModuleReference> module;  // PyTorch files only; has described the task
  std::vector<std::string> notes;           // what was changed to make it fit, as sentences
};

// A .py file, as opposed to a task folder.
bool is_module_path(const std::string& path);

// The path, or, where a path below examples/ does not exist, the example that was installed with
// the program.
std::string find_task(const std::string& path);

// Looks where find_task does. Fails with kBadInput (missing or invalid task), kTask (the module
// cannot be a task, with the reason), kEnvironment (no Python with PyTorch).
Result<OpenedTask> open_task(const std::string& path, const OpenSettings& settings);

}  // namespace kernelpro
