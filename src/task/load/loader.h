// SPDX-License-Identifier: Apache-2.0
// Reads the native task folder (docs/task-format.md): task.toml, reference.cpp, reference.cu,
// kernel.cpp, kernel.cu. Input is untrusted: every fault is a kBadInput error with the file, the
// line and column where TOML has them, and what to write instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "core/task/task.h"

namespace kernelpro {

// Checks everything that later stages rely on: names are identifiers and distinct, every expression
// evaluates for every case, no tensor is empty, at least one output and one timed case for each
// target that a case names, references present. `cpu_only`: without the reference in CUDA, too.
Result<Task> load_task(const std::string& folder, bool cpu_only = false);

// Parses only a task.toml's text, with all checks that need no other file; the texts of references
// and kernels stay empty. `path` is used in messages and sets Task::folder. Safe on any bytes.
Result<Task> parse_task(std::string_view text, const std::string& path);

}  // namespace kernelpro
