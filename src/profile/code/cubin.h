// SPDX-License-Identifier: Apache-2.0
// What a cubin's ELF sections tell. Pure; any bytes are safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/binary.h"

namespace kernelpro {

struct CubinFunction {
  std::string name;          // mangled
  std::uint32_t symbol = 0;  // its index, by which nvdisasm knows it
  std::uint64_t bytes = 0;   // of code
};

// The functions that a cubin defines, in the order of its symbols; none for other bytes.
std::vector<CubinFunction> cubin_functions(std::string_view image);

// Registers, stack and static shared memory of its functions, as ptxas reports them, by mangled
// name; spills are unknown.
std::map<std::string, KernelResources> cubin_resources(std::string_view image);

}  // namespace kernelpro
