// SPDX-License-Identifier: Apache-2.0
// The probes of the cuda target. The driver is opened by name, without its headers, so that they
// also tell about a machine with a GPU when this build was made without CUDA.
#pragma once

#include <vector>

#include "machine/doctor/probe.h"

namespace kernelpro {

std::vector<Probe> probe_cuda();

}  // namespace kernelpro
