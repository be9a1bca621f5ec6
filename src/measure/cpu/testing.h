// SPDX-License-Identifier: Apache-2.0
// For tests of the cpu target: small tasks built in code, with real compilers and processes.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "build/build.h"
#include "measure/judge/evaluator.h"

namespace kernelpro::testing {

// y[r][c] = 2 * x[r][c] + 1, int32 n[r] = number of positive x in the row; a case of 7 x 33 and a
// timed one of 64 x 257. Workspace of 256 bytes.
inline Task scale_task() {
  Task task;
  task.name = "scale";
  Tensor x;
  x.name = "x";
  x.shape = {"R", "C"};
  Tensor y = x;
  y.name = "y";
  y.role = Role::kOutput;
  y.tolerance = 1e-5;
  Tensor n;
  n.name = "n";
  n.role = Role::kOutput;
  n.dtype = DType::kInt32;
  n.shape = {"R"};
  task.tensors = {x, y, n};
  Case small;
  small.name = "small";
  small.dims = {{"R", 7}, {"C", 33}};
  Case large;
  large.name = "large";
  large.dims = {{"R", 64}, {"C", 257}};
  large.timed = true;
  task.cases = {small, large};
  task.workspace = "256";
  task.reference_cpp =
      "#include \"task.h\"\n"
      "extern \"C\" void reference(const ReferenceArgs& a) {\n"
      "  for (int r = 0; r < R; ++r) {\n"
      "    a.n[r] = 0;\n"
      "    for (int c = 0; c < C; ++c) {\n"
      "      a.y[r * C + c] = 2.0 * a.x[r * C + c] + 1.0;\n"
      "      a.n[r] += a.x[r * C + c] > 0;\n"
      "    }\n"
      "  }\n"
      "}\n";
  return task;
}

// A kernel for scale_task: correct rows and counts between `before` and `after`.
inline std::string kernel(const std::string& top, const std::string& before,
                          const std::string& after) {
  return "#include \"task.h\"\n" + top +
         "\nstatic void compute(const Args& a) {\n"
         "  for (int r = 0; r < R; ++r) {\n"
         "    int n = 0;\n"
         "    for (int c = 0; c < C; ++c) {\n"
         "      a.y[r * C + c] = 2.0f * a.x[r * C + c] + 1.0f;\n"
         "      n += a.x[r * C + c] > 0;\n"
         "    }\n"
         "    a.n[r] = n;\n"
         "  }\n"
         "}\n"
         "extern \"C\" void launch(const Args& a) {\n  " +
         before + "\n  compute(a);\n  " + after + "\n}\n";
}

// What `evaluator` says to the task with its references.
inline Result<void> prepare(Evaluator& evaluator, const Task& task, Compiler& compiler) {
  KP_ASSIGN(const References references,
            build_references(task, TargetKind::kCpu, compiler, nullptr));
  return evaluator.prepare(references);
}

inline CompileSettings compile_settings(const std::string& cache) {
  CompileSettings settings;
  settings.cache_dir = cache;
  return settings;
}

}  // namespace kernelpro::testing
