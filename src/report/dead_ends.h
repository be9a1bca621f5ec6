// SPDX-License-Identifier: Apache-2.0
// Explains why the search stopped expanding a candidate, from the run's rebuilt search
// (run/planted.h).
#pragma once

#include <map>
#include <string>

#include "report/view.h"

namespace kernelpro {

// Reasons by candidate id; candidates that are still open are left out.
std::map<std::int64_t, std::string> dead_ends(const RunView& view);

// "nothing more is tried below 9 of 40 candidates:" and a line for each reason; "" when there are
// none or the tree is not known.
std::string dead_end_lines(const RunView& view);

}  // namespace kernelpro
