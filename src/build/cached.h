// SPDX-License-Identifier: Apache-2.0
// One way from a key to a build: look it up, else make it in a staged folder and publish that.
#pragma once

#include <functional>
#include <string>

#include "base/process/subprocess.h"
#include "build/cache.h"
#include "build/compiler.h"

namespace kernelpro {

// What came of one run of a compiler in a folder. Not `certain`: it was ended by a limit, another
// run might go differently, and nothing is kept.
struct Made {
  Build build;
  bool certain = true;
  // How the compiler was ended by somebody else; "": it was not. Then it is run again.
  std::string killed = {};
};

// "ended by signal 9 (Killed)" where a compiler, or a part of one, was ended from outside; else "".
std::string killed_from_outside(const Exit& exit);

inline constexpr int kMostKilledCompilers = 3;  // in a row

// Runs `make` in the staged `*folder`, and in a fresh one again while its compiler is killed from
// outside, kMostKilledCompilers times in all; then that is the machine's fault (kEnvironment).
Result<Made> make_unless_killed(const BuildCache& cache, std::string* folder,
                                const std::function<Result<Made>(const std::string&)>& make);

// `make` gets the staged folder and leaves the binary's files in it. Thread-safe.
CompileResult cached_build(const BuildCache& cache, const std::string& key,
                           const std::string& case_name,
                           const std::function<Result<Made>(const std::string& folder)>& make);

}  // namespace kernelpro
