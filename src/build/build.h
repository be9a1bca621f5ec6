// SPDX-License-Identifier: Apache-2.0
// Builds a candidate's source into binaries, one per case of the task.
#pragma once

#include <variant>

#include "base/error.h"
#include "build/compiler.h"
#include "core/binary.h"
#include "core/candidate.h"
#include "core/evaluation.h"
#include "core/task.h"

namespace kernelpro {

// Either a binary per case of cases_for(task, target), or the compile error. Cases of a CUDA
// candidate are built in parallel. The file of a language that is not compiled goes into the
// cache.
using BuildResult = Result<std::variant<Subject, CompileError>>;
BuildResult build(const Task& task, TargetKind kind, Compiler& compiler, const Candidate& candidate,
                  double* compile_ms);

struct BuiltKernel {
  BuildResult built;
  double compile_ms = 0;
};
BuiltKernel build_kernel(const Task& task, TargetKind kind, Compiler& compiler,
                         const Candidate& candidate);

}  // namespace kernelpro
