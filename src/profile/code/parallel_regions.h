// SPDX-License-Identifier: Apache-2.0
// Does a CPU candidate share its work among threads? Pure.
#pragma once

#include <vector>

#include "profile/code/objdump.h"

namespace kernelpro {

// Calls that start threads or wake a thread team: OpenMP parallel regions (of GCC's and LLVM's run
// time), std::thread, pthreads.
int parallel_regions(const std::vector<AsmFunction>& functions);

}  // namespace kernelpro
