// SPDX-License-Identifier: Apache-2.0
// External references of a candidate's device code, read from its cubin.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// Names in the symbol table of a 64-bit ELF file; none for other files. Any bytes are safe.
std::vector<std::string> elf_symbols(const std::string& file);

struct ForbiddenSymbol {
  std::string rule;    // "device-heap", "device-launch"; "" when nothing is forbidden
  std::string reason;  // one sentence
};
// Device code that keeps memory between calls (malloc, printf's buffer) or launches work itself
// does something that the launch plan does not show and that reloading the module does not undo.
ForbiddenSymbol forbidden_symbol(const std::string& cubin);

}  // namespace kernelpro
