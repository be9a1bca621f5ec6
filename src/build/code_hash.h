// SPDX-License-Identifier: Apache-2.0
// Whether two candidates became the same machine code, whatever their sources say.
#pragma once

#include <string>
#include <vector>

#include "core/binary.h"

namespace kernelpro {

// Equal for candidates whose instructions, constants, initial data, registers, shared memory and
// launches are equal in every case; names of files, build ids and debug information do not count.
// "" where that cannot be told: PyTorch files, and what cannot be read.
std::string code_hash(const std::vector<Binary>& binaries);

}  // namespace kernelpro
