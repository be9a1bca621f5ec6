// SPDX-License-Identifier: Apache-2.0
// Runs a whole program under ncu to collect counters for a few of its kernels.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "profile/import/ncu.h"

namespace kernelpro {

// Profiles one launch of each kernel in `kernels` (names as the object file has them): the second
// if `repeated` (the first often meets cold caches and lazy loading). Blocks. kEnvironment without
// ncu or without permission for counters.
struct NcuKernel {
  std::string name;
  bool repeated = false;
};
Result<NcuImport> run_under_ncu(const std::vector<std::string>& argv,
                                const std::vector<NcuKernel>& kernels, double timeout_s);

// Adds the counters of `import` to kernels of the same name that have none, with amounts multiplied
// by the launches of each. Returns the number of kernels that got counters.
int add_ncu_counters(const NcuImport& import, Evidence* evidence);

}  // namespace kernelpro
