// SPDX-License-Identifier: Apache-2.0
// Runs a whole program under ncu for the counters of a few of its kernels.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "profile/import/ncu.h"

namespace kernelpro {

// One launch of each kernel in `kernels` (mangled or demangled), the second where `repeated` says
// so (the first often meets cold caches and lazy loading). Blocks. kEnvironment without ncu or
// without the permission for counters.
struct NcuKernel {
  std::string name;
  bool repeated = false;
};
Result<NcuImport> run_under_ncu(const std::vector<std::string>& argv,
                                const std::vector<NcuKernel>& kernels, double timeout_s);

// Adds the counters of `import` to the kernels of the same name that have none, amounts times the
// launches of each. Gives how many kernels got some.
int add_ncu_counters(const NcuImport& import, Evidence* evidence);

}  // namespace kernelpro
