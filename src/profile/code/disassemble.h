// SPDX-License-Identifier: Apache-2.0
// Runs the disassemblers and caches their text beside the binary ("X.objdump.txt", "X.sass.txt").
// Blocks for up to a minute. Fails with kEnvironment when no disassembler is installed or it cannot
// read the file.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct Disassembly {
  std::string text;
  std::string tool;  // "objdump", "nvdisasm", "cuobjdump"
  int left_out = 0;  // functions of a large cubin that were not disassembled, the smallest
};

Result<Disassembly> disassemble_host(const std::string& shared_object);
// `only`: these functions (mangled) where the cubin has any of them; empty: all. Of a library's
// many megabytes of code, the largest functions are chosen that give a text of bearable size.
Result<Disassembly> disassemble_cubin(const std::string& cubin,
                                      const std::vector<std::string>& only = {});

}  // namespace kernelpro
