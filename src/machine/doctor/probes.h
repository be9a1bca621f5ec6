// SPDX-License-Identifier: Apache-2.0
// What this machine allows and lacks, for `kernelpro doctor`. Each probe looks for itself (a file,
// a program, a library, a system call) and never throws. All together they take about a second, and
// what they start is ended when it takes too long.
#pragma once

#include <string>
#include <vector>

#include "machine/doctor/probe.h"

namespace kernelpro {

// In a fixed order, groups together.
std::vector<Probe> probe_machine();
// Whether PyTorch can use the GPU; imports it, which takes seconds. Belongs to "PyTorch tasks".
Probe probe_torch_device();

}  // namespace kernelpro
