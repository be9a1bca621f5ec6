// SPDX-License-Identifier: Apache-2.0
// Argument parsing and candidate output that several tools share. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "run/sitting.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

TaskChoice task_choice(const Json& arguments);

// The candidate's outcome, time and comparisons in a few lines, or its failure.
std::string row_text(const Sitting& sitting, const Sitting::Row& row);
// The same as JSON, with findings.
Json row_json(const Sitting& sitting, const Sitting::Row& row);
// One line: "12.3 us a call, 1.53x the start", or its failure.
std::string row_line(const Sitting::Row& row);

}  // namespace kernelpro
