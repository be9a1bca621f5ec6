// SPDX-License-Identifier: Apache-2.0
// Reads GPU disassembly, `nvdisasm -c` or `cuobjdump -sass`, of sm_70 to sm_121: which loops of a
// kernel are hot, and what their instructions do.
// Pure. Any bytes are safe; what is not understood is left out or counted as unknown.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/sass/mix.h"
#include "profile/sass/opcodes.h"
#include "profile/sass/program.h"

namespace kernelpro {

std::vector<SassFunction> parse_sass(std::string_view text);

// A loop is hot by its nesting and by its matrix, arithmetic and memory instructions. Left out:
// loops that only wait, remainders of unrolled loops, and paths that only rare operands take.
SassMix hot_mix(const SassFunction& kernel);

struct SassKernel {
  std::string name;  // mangled
  SassMix mix;
};

// The mix of every kernel in the text, in its order.
std::vector<SassKernel> kernel_mixes(std::string_view text);

}  // namespace kernelpro
