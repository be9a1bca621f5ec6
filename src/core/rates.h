// SPDX-License-Identifier: Apache-2.0
// Which of the measured ceilings holds for a task's arithmetic.
#pragma once

#include "core/evidence.h"
#include "core/machine.h"
#include "core/task.h"

namespace kernelpro {

// Of the matrix units: TF32 runs at half of the rate of 16-bit types (NVIDIA's figures for Ampere
// and Hopper; an H200 measured 400 and 790 TFLOP/s).
inline constexpr double kTf32Rate = 0.5;

// Is every floating-point input fp16 or bf16? Then matrix units multiply them exactly.
bool has_half_inputs(const Task& task);

// FLOP/s that matrix products of the task's contract may reach: the matrix units' rate for half
// inputs, kTf32Rate of it where TF32 is allowed, else that of fp32 multiply-adds. 0: not known.
double matmul_rate(const Evidence& evidence);
double matmul_rate(const Task& task, const Ceilings& ceilings);

}  // namespace kernelpro
