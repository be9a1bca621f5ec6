// SPDX-License-Identifier: Apache-2.0
// Turns code that a user already has into a task (`kernelpro new`). What can be derived is; what
// has to be decided is written as a guess in a line with TODO(kernelpro), which the loader refuses
// until a person has looked at it (task/load/unfilled.h). Pure: texts in, texts out; any bytes are
// safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "task/scaffold/source.h"

namespace kernelpro {

// An empty task: y = f(x) on a vector, everything to be decided.
Scaffold scaffold_empty(const std::string& name);

// From a .cu or .cpp with kernels or functions on pointers, or a PyTorch extension (.cu, .cpp, or a
// .py with load_inline). Fails with kBadInput when nothing in it can be a kernel, naming what was
// looked for and what was found.
Result<Scaffold> scaffold_from(const ScaffoldSource& source);

}  // namespace kernelpro
