// SPDX-License-Identifier: Apache-2.0
// Finds Python and unpacks our package for it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct PythonFacts {
  std::string interpreter;           // absolute
  std::string torch_version;         // "2.11.0+cu130"
  std::vector<std::string> folders;  // that it imports from, and its install roots
  std::string user_base;             // PYTHONUSERBASE: where the user's own packages are
};

// `wanted`, else $KERNELPRO_PYTHON, else python3 on PATH, else /usr/bin/python3: the first of the
// last two that has torch. A shim is resolved to the interpreter that it starts. Runs it once
// (about 30 ms, without importing torch) and remembers the answer for this process. Fails with
// kEnvironment if there is no interpreter, no torch, or a torch before 1.13. Safe from any thread.
Result<PythonFacts> find_python(const std::string& wanted);

// What a candidate in Python reads of it: its install root and the folders on PYTHONPATH. Of these
// none that holds home folders, the cache, or the working folder, where runs mostly lie.
std::vector<std::string> candidate_roots(const PythonFacts& facts);

// Whether a version such as "2.11.0+cu130" is at least major.minor.
bool version_at_least(const std::string& version, int major, int minor);

// The folder of the package kernelpro_torch, unpacked into cache_dir() under its content's hash.
Result<std::string> unpacked_package();

}  // namespace kernelpro
