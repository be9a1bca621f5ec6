// SPDX-License-Identifier: Apache-2.0
// For this room's tests and bench_suite_kill: tasks for the cpu target that build and run fast.
#pragma once

#include <string>

#include "base/files.h"

namespace kernelpro::testing {

// Writes a task folder: y = FACTOR x, with a kernel whose four knobs change only the text.
inline Result<void> write_scale_task(const std::string& folder, int factor) {
  const std::string toml = R"([task]
name = "scale"
summary = "y = a x"
flops = "N"

[[tensor]]
name = "x"
role = "input"
dtype = "fp32"
shape = ["N"]

[[tensor]]
name = "y"
role = "output"
dtype = "fp32"
shape = ["N"]

[[case]]
name = "small"
dims = { N = 1000 }
timed = true
targets = ["cpu"]
)";
  const std::string by = std::to_string(factor);
  const std::string reference =
      "#include \"task.h\"\nextern \"C\" void reference(const ReferenceArgs& args) {\n"
      "  for (long i = 0; i < N; ++i) args.y[i] = " +
      by + ".0 * args.x[i];\n}\n";
  std::string kernel;
  for (const char* name : {"ALPHA", "BETA", "GAMMA", "DELTA"}) {
    kernel += std::string("// @knob ") + name + " 1 2 3 4 5 6\n";
  }
  kernel +=
      "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
      "  for (long i = 0; i < N; ++i) {\n"
      "    volatile float v = args.x[i];  // slow on purpose: far from any ceiling\n"
      "    for (int k = 0; k < 200; ++k) v = v;\n"
      "    args.y[i] = " +
      by + ".0f * v + 0 * (ALPHA + BETA + GAMMA + DELTA);\n  }\n}\n";
  KP_TRY(make_dirs(folder));
  KP_TRY(write_file(join(folder, "task.toml"), toml));
  KP_TRY(write_file(join(folder, "reference.cpp"), reference));
  return write_file(join(folder, "kernel.cpp"), kernel);
}

}  // namespace kernelpro::testing
