// SPDX-License-Identifier: Apache-2.0
// ncu's details page as text (`ncu PROGRAM`, `ncu --import X --page details`), as people paste it:
// indentation, alignment and surrounding output do not matter. Pure; any bytes are safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "profile/import/ncu_table.h"

namespace kernelpro {

struct NcuDetails {
  NcuTable table;
  std::vector<std::string> unknown;   // metrics that have no row in our registry, by name
  std::vector<std::string> programs;  // paths of profiled programs that the text names
};

bool is_ncu_details(std::string_view text);
NcuDetails read_ncu_details(std::string_view text);

}  // namespace kernelpro
