// SPDX-License-Identifier: Apache-2.0
// What the opcodes of sm_70 to sm_121 do, by the part of their name before the first dot. From
// NVIDIA's "CUDA Binary Utilities" (instruction set reference) and compiled code.
#pragma once

#include <string_view>

#include "profile/sass/op.h"

namespace kernelpro {

struct SassInstruction;

Op op_of(std::string_view root);

bool is_variable_latency(Op op);  // its result comes by a scoreboard

// On fp64 values: arithmetic, comparisons and conversions from or to them.
bool touches_fp64(const SassInstruction& i);
bool is_fp64_conversion(const SassInstruction& i);
// Bits that one thread moves. Whole fields only: "LTC128B" is a cache hint, no width.
int access_bits(const SassInstruction& i);
// Cycles from issue until a dependent instruction may issue, as typical for sm_80 to sm_100:
// published micro-benchmarks (Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
// Architecture", 2024; Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture", 2022).
// Memory: what a miss of L1 and L2 costs for global memory, a hit of L1 for local memory.
int typical_latency(const SassInstruction& i);

}  // namespace kernelpro
