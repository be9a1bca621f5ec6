// SPDX-License-Identifier: Apache-2.0
// Classifies the opcodes of sm_70 to sm_121 by the part of their name before the first dot.
// Sources: NVIDIA's "CUDA Binary Utilities" (instruction set reference) and compiled code.
#pragma once

#include <string_view>

#include "profile/sass/op.h"

namespace kernelpro {

struct SassInstruction;

Op op_of(std::string_view root);

bool is_variable_latency(Op op);  // a scoreboard signals its result

// fp64 arithmetic, comparisons and conversions from or to fp64.
bool touches_fp64(const SassInstruction& i);
bool is_fp64_conversion(const SassInstruction& i);
// Bits moved per thread. Matches whole fields only: "LTC128B" is a cache hint, not a width.
int access_bits(const SassInstruction& i);
// Typical cycles from issue until a dependent instruction may issue on sm_80 to sm_100, from
// published microbenchmarks (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture", 2024; Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture", 2022).
// Global memory: a miss in L1 and L2. Local memory: an L1 hit.
int typical_latency(const SassInstruction& i);

}  // namespace kernelpro
