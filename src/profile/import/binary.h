// SPDX-License-Identifier: Apache-2.0
// Static evidence from a compiled file alone: a cubin, or a shared object or program that contains
// device code; without device code, from its x86-64 code.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evidence/evidence.h"
#include "profile/sass/program.h"

namespace kernelpro {

struct BinaryImport {
  // One entry of `kernels` per kernel, ordered by the work in its hot loops; run times are unknown.
  // Texts: "target", "arch". x86-64 code: items of the call, no kernels.
  Evidence evidence;
  std::map<std::string, SassFunction> functions;  // the kernels' code, by mangled name
  std::vector<std::string> notes;                 // sentences
  std::vector<std::string> left_out;              // the notes on code that was not read
};

// `arch` ("sm_90a"): which copy of the code to use; "" = the newest. `kernel`: only kernels whose
// name contains it; `names`: only these, mangled or not ({}: all). Nothing else is disassembled.
// kBadInput when the file is of neither kind, holds no such kernel, or holds PTX only; kEnvironment
// without the disassemblers, or when the text would be too large. Blocks.
Result<BinaryImport> import_binary(const std::string& path, const std::string& arch,
                                   const std::string& kernel = "",
                                   const std::vector<std::string>& names = {});

}  // namespace kernelpro
