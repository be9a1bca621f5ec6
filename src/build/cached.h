// SPDX-License-Identifier: Apache-2.0
// From a key to a build: look it up, else make it in a staged folder and publish it.
#pragma once

#include <functional>
#include <string>

#include "base/process/subprocess.h"
#include "build/cache.h"
#include "build/compiler.h"

namespace kernelpro {

// Result of one compiler run in a folder. Not `certain`: a limit ended it, another run might
// differ, and nothing is cached.
struct Made {
  Build build;
  bool certain = true;
  // How the compiler was killed from outside, which calls for a retry; "": it was not.
  std::string killed = {};
};

// "ended by signal 9 (Killed)" if a compiler, or a part of one, was killed from outside; else "".
std::string killed_from_outside(const Exit& exit);

inline constexpr int kMostKilledCompilers = 3;  // in a row

// Runs `make` in the staged `*folder`. While its compiler is killed from outside, retries in a
// fresh one; after kMostKilledCompilers runs in all, fails with kEnvironment.
Result<Made> make_unless_killed(const BuildCache& cache, std::string* folder,
                                const std::function<Result<Made>(const std::string&)>& make);

// `make` gets the staged folder and leaves the binary's files in it. Thread-safe.
CompileResult cached_build(const BuildCache& cache, const std::string& key,
                           const std::string& case_name,
                           const std::function<Result<Made>(const std::string& folder)>& make);

}  // namespace kernelpro
