// SPDX-License-Identifier: Apache-2.0
// Command lines that start Python with our package.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// `kernelpro_torch` is embedded in the program and unpacked into the cache. `role`: "reference",
// "candidate", "capture", "baseline". Fails with kEnvironment if there is no interpreter, no torch,
// or a torch that is too old.
struct PythonCommand {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
};
Result<PythonCommand> python_command(const std::string& role, const std::string& python = "");

}  // namespace kernelpro
