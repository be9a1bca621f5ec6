// SPDX-License-Identifier: Apache-2.0
// Products of fp32 operands in parts on matrix units: how many a kernel computes. Pure.
#pragma once

#include "core/evidence/evidence.h"

namespace kernelpro {

// Products of parts for each of the task's, from how busy the matrix units are, the measured rate
// at what good kernels take from them, and the kernel's time; about right. 0: the kernel does not
// multiply in parts, or it was not counted. `facts`: the kernel's; `us`: its part of the call, in
// microseconds.
double products_of_parts(const Evidence& evidence, const Evidence& facts, double us);

}  // namespace kernelpro
