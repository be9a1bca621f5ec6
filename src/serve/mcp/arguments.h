// SPDX-License-Identifier: Apache-2.0
// What several tools read from their arguments and tell about a candidate. Pure.
#pragma once

#include <string>

#include "core/json.h"
#include "run/sitting.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

TaskChoice task_choice(const Json& arguments);

// The candidate's outcome, time and comparisons in a few lines; its failure when it has one.
std::string row_text(const Sitting& sitting, const Sitting::Row& row);
// The same for programs, findings included.
Json row_json(const Sitting& sitting, const Sitting::Row& row);
// "12.3 us a call, 1.53x the start", or how it failed, on one line.
std::string row_line(const Sitting::Row& row);

}  // namespace kernelpro
