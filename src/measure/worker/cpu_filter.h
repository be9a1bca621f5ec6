// SPDX-License-Identifier: Apache-2.0
// The system calls that a cpu candidate may make. What traps is answered or reported by the handler
// of SIGSYS (cpu_sandbox.cc).
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/process/seccomp.h"

namespace kernelpro {

// For the calling process. The pages in `fixed` cannot be mapped, unmapped or protected anew.
std::vector<sock_filter> cpu_filter(const std::vector<PageRange>& fixed);

}  // namespace kernelpro
