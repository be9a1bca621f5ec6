// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "machine/doctor/probe.h"

namespace kernelpro {

// Versions of the interpreter, PyTorch and Triton, without importing them (about 0.1 s).
std::vector<Probe> probe_python();

}  // namespace kernelpro
