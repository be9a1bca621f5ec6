// SPDX-License-Identifier: Apache-2.0
// A task from its path, of either kind: a folder with task.toml, or a PyTorch file with `Model`,
// `get_inputs` and `get_init_inputs`. For the latter a reference process is started, asked what the
// module is, and handed out running.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

struct OpenSettings {
  TargetKind target = TargetKind::kCpu;
  // Replaces integers at the top of a PyTorch file; for a folder kBadInput.
  std::map<std::string, std::int64_t> dims;
  // The contract, instead of the task's own. fp16 and bf16 cast a module's fp32 tensors.
  std::optional<Precision> precision;
  std::string start;       // file of a starting kernel, instead of the task's; "" = none given
  std::string gpu;         // cuda: UUID or index; "" the first
  std::string python;      // interpreter; "" = the default one
  double timeout_s = 120;  // for one command to the reference
  // Called on another thread while PyTorch is imported, which takes seconds; may be empty.
  std::function<void(TargetKind)> meanwhile;
  double memory_bytes = 0;  // what the task's largest case may need; 0: what the machine has
};

struct OpenedTask {
  Task task;
  std::unique_ptr<ModuleReference> module;  // of a PyTorch file; has described the task
  std::vector<std::string> notes;           // what was changed so that it fits, as sentences
};

// A .py file, as opposed to a task folder.
bool is_module_path(const std::string& path);

// Fails with kBadInput (no such task, a fault in it), kTask (a module that cannot be a task, with
// the reason), kEnvironment (no Python with PyTorch).
Result<OpenedTask> open_task(const std::string& path, const OpenSettings& settings);

}  // namespace kernelpro
