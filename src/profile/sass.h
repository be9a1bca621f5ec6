// SPDX-License-Identifier: Apache-2.0
// Reads GPU disassembly, `nvdisasm -c` or `cuobjdump -sass`, of sm_80 to sm_120: which loops of a
// kernel are hot, and what their instructions do.
// Pure. Any bytes are safe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct SassInstruction {
  unsigned long long address = 0;
  std::string guard;                   // "@!P0", "@UP1", ""
  std::string root;                    // "LDG"
  std::vector<std::string> modifiers;  // "E", "128"
  std::string operands;
};

struct SassFunction {
  std::string name;  // as in the object: mangled
  std::string arch;  // "sm_90a"; "" when the text does not say
  std::vector<SassInstruction> code;
  std::map<std::string, int> labels;  // index of the instruction after each
};

std::vector<SassFunction> parse_sass(std::string_view text);

// Counts of the hot loops under the names of the metric registry (sass.hot.*), and of the whole
// kernel (sass.hmma, sass.hgmma, sass.local_*).
struct SassMix {
  std::map<std::string, double> metrics;
  int loops = 0;      // 0: no loop, the whole body was counted
  double weight = 0;  // an estimate of the work in the hot loops, to compare kernels by
  std::string text;   // the hot loops, for people
};

// A loop is hot by its nesting and by its matrix, arithmetic and memory instructions. Left out:
// loops that only wait, and remainders of unrolled loops.
SassMix hot_mix(const SassFunction& kernel);

}  // namespace kernelpro
