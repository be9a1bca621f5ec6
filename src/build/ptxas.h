// SPDX-License-Identifier: Apache-2.0
// Reads what `ptxas -v` prints (through nvcc or NVRTC). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/binary.h"

namespace kernelpro {

// By mangled kernel name; lines that are not understood are passed over.
std::map<std::string, KernelResources> parse_ptxas(std::string_view log);

// The log without ptxas's information lines: what a person should still see.
std::string without_ptxas_info(std::string_view log);

}  // namespace kernelpro
