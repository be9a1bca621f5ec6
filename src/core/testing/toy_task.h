// SPDX-License-Identifier: Apache-2.0
// For tests and benches: the smallest task, y = FACTOR x over N fp32 elements, as the files of a
// task folder and as a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "core/task/task.h"

namespace kernelpro::testing {

struct ToyCase {
  std::string name;
  std::int64_t n = 0;
  std::string flag;  // "timed", "held_out" or none
};

// task.toml, for the cpu target.
inline std::string toy_toml(const std::vector<ToyCase>& cases) {
  std::string text = R"([task]
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
)";
  for (const ToyCase& c : cases) {
    text += "\n[[case]]\nname = \"" + c.name + "\"\ndims = { N = " + std::to_string(c.n) + " }\n" +
            (c.flag.empty() ? "" : c.flag + " = true\n") + "targets = [\"cpu\"]\n";
  }
  return text;
}

inline std::string toy_reference(int factor = 2) {
  return "#include \"task.h\"\nextern \"C\" void reference(const ReferenceArgs& args) {\n"
         "  for (long i = 0; i < N; ++i) args.y[i] = " +
         std::to_string(factor) + ".0 * args.x[i];\n}\n";
}

// 1296 settings, all of which compile to the same loop. Slow on purpose: far from any ceiling, so
// that a search goes on.
inline std::string toy_knobbed_kernel(int factor = 2) {
  std::string text;
  for (const char* name : {"ALPHA", "BETA", "GAMMA", "DELTA"}) {
    text += std::string("// @knob ") + name + " 1 2 3 4 5 6\n";
  }
  return text +
         "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
         "  for (long i = 0; i < N; ++i) {\n"
         "    volatile float v = args.x[i];\n"
         "    for (int k = 0; k < 200; ++k) v = v;\n"
         "    args.y[i] = " +
         std::to_string(factor) + ".0f * v + 0 * (ALPHA + BETA + GAMMA + DELTA);\n  }\n}\n";
}

// Writes a task folder. An empty `kernel` is left out.
inline Result<void> write_toy_task(const std::string& folder, const std::vector<ToyCase>& cases,
                                   int factor, const std::string& kernel) {
  KP_TRY(make_dirs(folder));
  KP_TRY(write_file(join(folder, "task.toml"), toy_toml(cases)));
  KP_TRY(write_file(join(folder, "reference.cpp"), toy_reference(factor)));
  if (kernel.empty()) return {};
  return write_file(join(folder, "kernel.cpp"), kernel);
}

// y = 2 x without sources: a small case and a timed large one.
inline Task toy_task() {
  Task task;
  task.name = "scale";
  task.summary = "y = 2 x";
  Tensor x{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0};
  Tensor y{"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0};
  task.tensors = {x, y};
  task.cases = {Case{"small", {{"N", 100}}, false, {}}, Case{"large", {{"N", 65536}}, true, {}}};
  return task;
}

}  // namespace kernelpro::testing
