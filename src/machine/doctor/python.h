// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "machine/doctor/probe.h"

namespace kernelpro {

// The interpreter, PyTorch and Triton, by their versions; imports none of them (about 0.1 s).
std::vector<Probe> probe_python();

}  // namespace kernelpro
