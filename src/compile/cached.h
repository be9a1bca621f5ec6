// SPDX-License-Identifier: Apache-2.0
// One way from a key to a build: look it up, else make it in a staged folder and publish that.
#pragma once

#include <functional>
#include <string>

#include "compile/cache.h"
#include "compile/compiler.h"

namespace kernelpro {

// What came of one run of a compiler in a folder. Not `certain`: it was ended by a limit, another
// run might go differently, and nothing is kept.
struct Made {
  Build build;
  bool certain = true;
};

// `make` gets the staged folder and leaves the binary's files in it. Thread-safe.
CompileResult cached_build(const BuildCache& cache, const std::string& key,
                           const std::string& case_name,
                           const std::function<Result<Made>(const std::string& folder)>& make);

}  // namespace kernelpro
