// SPDX-License-Identifier: Apache-2.0
// Static evidence from a compiled file alone: a cubin, or a shared object or program with device
// code in it; without any, its x86-64 code.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/evidence.h"

namespace kernelpro {

struct BinaryImport {
  // One entry of `kernels` for each kernel, in the order of the work in their hot loops; how long
  // each runs is not known. Texts: "target", "arch". x86-64 code: items of the call, no kernels.
  Evidence evidence;
  std::vector<std::string> notes;  // sentences
};

// `arch` ("sm_90a"): of the copies of the code, the one for it; "" = the newest. `kernel`: only
// those whose name contains it. kBadInput when the file is neither, holds no kernel, or holds PTX
// only; kEnvironment without the disassemblers. Blocks.
Result<BinaryImport> import_binary(const std::string& path, const std::string& arch,
                                   const std::string& kernel = "");

}  // namespace kernelpro
