// SPDX-License-Identifier: Apache-2.0
// What this machine provides and lacks, for `kernelpro doctor`. Each probe is independent (a file,
// a program, a library, a system call) and never throws. Together they take about a second; a child
// process that takes too long is killed.
#pragma once

#include <string>
#include <vector>

#include "machine/doctor/probe.h"

namespace kernelpro {

// In a fixed order, grouped.
std::vector<Probe> probe_machine();
// Whether PyTorch can use the GPU. Takes seconds (imports it). Belongs to "PyTorch tasks".
Probe probe_torch_device();

}  // namespace kernelpro
