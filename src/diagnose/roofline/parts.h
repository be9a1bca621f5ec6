// SPDX-License-Identifier: Apache-2.0
// Products of fp32 operands on matrix units: how many a kernel computes. Pure.
#pragma once

#include "core/evidence/evidence.h"

namespace kernelpro {

// Products of 16-bit parts for each of the task's, from how busy the matrix units are, the measured
// rate at what good kernels take from them, and the kernel's time; about right. A product of TF32
// counts as two, as it takes so long (core/evidence/rates.h). 0: inputs are halves, the call does
// not use matrix units, or the kernel was not counted. `facts`: the kernel's; `us`: its part of the
// call, in microseconds.
double products_of_parts(const Evidence& evidence, const Evidence& facts, double us);

}  // namespace kernelpro
