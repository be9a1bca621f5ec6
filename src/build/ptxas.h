// SPDX-License-Identifier: Apache-2.0
// Parses the output of `ptxas -v` (through nvcc or NVRTC). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/plan/binary.h"

namespace kernelpro {

// By mangled kernel name; skips unknown lines.
std::map<std::string, KernelResources> parse_ptxas(std::string_view log);

// The log without ptxas's information lines, for display.
std::string without_ptxas_info(std::string_view log);

}  // namespace kernelpro
