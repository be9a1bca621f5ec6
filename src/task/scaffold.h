// SPDX-License-Identifier: Apache-2.0
// Turns code that a user already has into a task (`kernelpro new`). What can be derived is; what
// has to be decided is written as a guess in a line with TODO(kernelpro), which the loader refuses
// until a person has looked at it (task/unfilled.h). Pure: texts in, texts out; any bytes are safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct Scaffold {
  std::string name;                          // of the task
  std::map<std::string, std::string> files;  // name in the folder -> text
  std::string task;                          // what to give to `evaluate`: "" the folder, or a file
  std::string kernel;                        // the kernel's file in it
  std::vector<std::string> derived;          // what was found, a sentence each
  std::vector<std::string> confirm;          // what the user must decide, a sentence each
};

struct ScaffoldSource {
  std::string name;      // of the task; a C identifier with - and . allowed
  std::string file;      // base name of the user's file: "softmax.cu"
  std::string text;      // of it
  std::string function;  // the launcher or kernel to take; "" chooses
  // Text of a file that `#include "x"` names; nullopt when there is none. May be empty.
  std::function<std::optional<std::string>(const std::string&)> include;
};

// An empty task: y = f(x) on a vector, everything to be decided.
Scaffold scaffold_empty(const std::string& name);

// From a .cu or .cpp with kernels or functions on pointers, or a PyTorch extension (.cu, .cpp, or a
// .py with load_inline). Fails with kBadInput when nothing in it can be a kernel, naming what was
// looked for and what was found.
Result<Scaffold> scaffold_from(const ScaffoldSource& source);

}  // namespace kernelpro
