// SPDX-License-Identifier: Apache-2.0
// How Python is started with our package.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// Python callers' command lines: `kernelpro_torch` is embedded in the program and unpacked into the
// cache. `role`: "reference", "candidate", "baseline". Fails with kEnvironment, naming what is
// missing: no interpreter, no torch, a torch that is too old.
struct PythonCommand {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
};
Result<PythonCommand> python_command(const std::string& role, const std::string& python = "");

}  // namespace kernelpro
