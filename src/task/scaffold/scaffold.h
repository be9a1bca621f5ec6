// SPDX-License-Identifier: Apache-2.0
// Turns a user's existing code into a task (`kernelpro new`). Derives what it can; the rest is a
// guess on a line marked TODO(kernelpro), which the loader refuses until a person has resolved it
// (task/load/unfilled.h). Pure: texts in, texts out; safe on any bytes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "task/scaffold/source.h"

namespace kernelpro {

// A name that a task may have, like `text`; never empty.
std::string task_name(const std::string& text);

// An empty task: y = f(x) on a vector, with every decision left open.
Scaffold scaffold_empty(const std::string& name);

// From a .cu or .cpp with kernels or functions on pointers, or a PyTorch extension (.cu, .cpp, or a
// .py with load_inline). Fails with kBadInput if nothing in it can be a kernel, listing what was
// sought and what was found.
Result<Scaffold> scaffold_from(const ScaffoldSource& source);

}  // namespace kernelpro
