// SPDX-License-Identifier: Apache-2.0
// Which Python there is, and where our package lies for it.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

struct PythonFacts {
  std::string interpreter;    // absolute
  std::string torch_version;  // "2.11.0+cu130"
};

// `wanted`, else $KERNELPRO_PYTHON, else python3 on PATH, else /usr/bin/python3: the first of the
// last two that has torch. Starts it once (about 30 ms, torch is not imported) and remembers the
// answer for this process. Fails with kEnvironment, naming what is missing: no interpreter, no
// torch, a torch before 1.13. Safe from any thread.
Result<PythonFacts> find_python(const std::string& wanted);

// Is a version such as "2.11.0+cu130" at least major.minor?
bool version_at_least(const std::string& version, int major, int minor);

// The folder of the package kernelpro_torch, unpacked into cache_dir() under its content's hash.
Result<std::string> unpacked_package();

}  // namespace kernelpro
