// SPDX-License-Identifier: Apache-2.0
// Runs the disassemblers and caches their text beside the binary ("X.objdump.txt", "X.sass.txt").
// Blocks for up to a minute. Fails with kEnvironment when no disassembler is installed or it cannot
// read the file.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

struct Disassembly {
  std::string text;
  std::string tool;  // "objdump", "nvdisasm", "cuobjdump"
};

Result<Disassembly> disassemble_host(const std::string& shared_object);
Result<Disassembly> disassemble_cubin(const std::string& cubin);

}  // namespace kernelpro
