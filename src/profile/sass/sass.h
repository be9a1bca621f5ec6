// SPDX-License-Identifier: Apache-2.0
// Reads GPU disassembly (`nvdisasm -c` or `cuobjdump -sass`, sm_70 to sm_121), finds a kernel's hot
// loops and counts what their instructions do.
// Pure. Any bytes are safe; unrecognized text is skipped or counted as unknown.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/samples.h"
#include "profile/sass/mix.h"
#include "profile/sass/opcodes.h"
#include "profile/sass/program.h"

namespace kernelpro {

std::vector<SassFunction> parse_sass(std::string_view text);

// Loops are ranked by nesting and by their matrix, arithmetic and memory instructions. Excluded:
// wait loops, remainders of unrolled loops, and paths taken only for rare operands. With samples of
// the kernel, those loops are hot in which they lie.
SassMix hot_mix(const SassFunction& kernel, const KernelSamples* samples = nullptr);

struct SassKernel {
  std::string name;  // mangled
  SassMix mix;
};

// The mix of every kernel, in the order of the text.
std::vector<SassKernel> kernel_mixes(std::string_view text);

}  // namespace kernelpro
