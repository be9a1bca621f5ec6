// SPDX-License-Identifier: Apache-2.0
// Reads the native task folder (docs/task-format.md): task.toml, reference.cpp, reference.cu,
// kernel.cpp, kernel.cu. Untrusted input: every fault is a kBadInput error that names file, line
// and column where TOML has them, and what to write instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "core/task.h"

namespace kernelpro {

// Checks everything that later rooms rely on: names are identifiers and distinct, every expression
// evaluates for every case, no tensor is empty, at least one output and one timed case for each
// target that a case names, references present.
Result<Task> load_task(const std::string& folder);

// The text of a task.toml alone, with all checks that need no other file; the texts of references
// and kernels stay empty. `path` is for messages and gives Task::folder. Any bytes are safe.
Result<Task> parse_task(std::string_view text, const std::string& path);

// Fails with kBadInput when the case's tensors (inputs, outputs, references, workspace, and two
// spare copies) need more than `available_bytes`.
Result<void> check_fits(const Task& task, const Case& c, std::int64_t available_bytes);

}  // namespace kernelpro
