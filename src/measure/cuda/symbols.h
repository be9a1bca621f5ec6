// SPDX-License-Identifier: Apache-2.0
// What a candidate's device code refers to outside itself, read from its cubin.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// Names in the symbol table of a 64-bit ELF file. Any bytes are safe; what is no such file has
// none.
std::vector<std::string> elf_symbols(const std::string& file);

struct ForbiddenSymbol {
  std::string rule;    // "device-heap", "device-launch"; "" when nothing is forbidden
  std::string reason;  // one sentence
};
// Device code that keeps memory between calls (malloc, printf's buffer) or launches work itself
// escapes from what a launch plan shows and what reloading a module forgets.
ForbiddenSymbol forbidden_symbol(const std::string& cubin);

}  // namespace kernelpro
