// SPDX-License-Identifier: Apache-2.0
// Source to Binary, through a content-addressed cache on disk. Thread-safe: a compiler may be used
// from several threads at once, and several processes may share the cache.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/evaluation/evaluation.h"
#include "core/plan/binary.h"
#include "core/task/task.h"

namespace kernelpro {

// An Error is the machine's fault (no compiler, disk full), a CompileError the source's.
using CompileResult = Result<std::variant<Binary, CompileError>>;

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Builds a candidate for one case. The source determines host form or plan form.
  virtual CompileResult compile(const Task& task, const Case& c, const Candidate& candidate) = 0;
  // Builds the task's reference for this target (entry point `reference`; cuda: host form).
  virtual CompileResult compile_reference(const Task& task, const Case& c) = 0;
  // "g++ 12.2.0 -O3 -march=native", for the record.
  virtual std::string describe() const = 0;
};

struct CompileSettings {
  std::string cache_dir;  // base/files.h cache_dir() when empty
  double timeout_s = 60;
  std::string cuda_arch;  // "sm_90a"; cuda only
  // cuda: absolute folders, in addition to the toolkit's, that candidates may include from. Sources
  // that do so get three times `timeout_s`.
  std::vector<std::string> include_dirs;
};

// Fails with kEnvironment if no host compiler is found. Tries $CXX, then c++, g++, clang++.
Result<std::unique_ptr<Compiler>> make_cpu_compiler(const CompileSettings& settings);
// Fails with kEnvironment if this build or machine has no CUDA compiler.
Result<std::unique_ptr<Compiler>> make_cuda_compiler(const CompileSettings& settings);

}  // namespace kernelpro
