// SPDX-License-Identifier: Apache-2.0
// Detects candidates that compiled to the same machine code, however their sources differ.
#pragma once

#include <string>
#include <vector>

#include "core/plan/binary.h"

namespace kernelpro {

// Equal for candidates whose instructions, constants, initial data, registers, shared memory and
// launches are equal in every case; ignores file names, build ids and debug information. "" if
// unknown: PyTorch files, and unreadable files.
std::string code_hash(const std::vector<Binary>& binaries);

}  // namespace kernelpro
