// SPDX-License-Identifier: Apache-2.0
// The probes of the cuda target. They open the driver by name, without its headers, so that a build
// without CUDA can still report on a machine with a GPU.
#pragma once

#include <vector>

#include "machine/doctor/probe.h"

namespace kernelpro {

std::vector<Probe> probe_cuda();

}  // namespace kernelpro
