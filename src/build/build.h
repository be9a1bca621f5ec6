// SPDX-License-Identifier: Apache-2.0
// Builds a candidate's source, and a task's references, into binaries, one per case of the task.
#pragma once

#include <string>
#include <variant>

#include "base/error.h"
#include "build/compiler.h"
#include "core/candidate/candidate.h"
#include "core/evaluation/evaluation.h"
#include "core/plan/binary.h"
#include "core/task/task.h"

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
  std::string code;  // hash of its machine code (build/code_hash.h); "" = none
};
BuiltKernel build_kernel(const Task& task, TargetKind kind, Compiler& compiler,
                         const Candidate& candidate);

// The references of a native task; empty for a Module, and without a source for this target.
// `host`: cuda: also builds reference.cpp, if the task has one; may be null. Fails with kTask for a
// reference that does not compile.
Result<References> build_references(const Task& task, TargetKind kind, Compiler& compiler,
                                    Compiler* host);

}  // namespace kernelpro
