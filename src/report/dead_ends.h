// SPDX-License-Identifier: Apache-2.0
// Why the search tries nothing more below a candidate, for people: the search of the run, rebuilt
// (run/planted.h).
#pragma once

#include <map>
#include <string>

#include "report/view.h"

namespace kernelpro {

// By candidate; those that are still open are left out.
std::map<std::int64_t, std::string> dead_ends(const RunView& view);

// "nothing more is tried below 9 of 40 candidates:" and a line for each reason; "" where there are
// none, or the tree is not known.
std::string dead_end_lines(const RunView& view);

}  // namespace kernelpro
