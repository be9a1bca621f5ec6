// SPDX-License-Identifier: Apache-2.0
// Does a CPU candidate split its work among threads? Pure.
#pragma once

#include <vector>

#include "profile/code/objdump.h"

namespace kernelpro {

// Number of calls that start threads or wake a thread team: OpenMP parallel regions (GCC's and
// LLVM's runtime), std::thread, pthreads.
int parallel_regions(const std::vector<AsmFunction>& functions);

}  // namespace kernelpro
