// SPDX-License-Identifier: Apache-2.0
// Several kernelpro commands at once on one terminal.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// Runs all commands and waits for them. They share our output, or print nothing when `quiet`. A
// requested stop (base/stop.h) is passed on to them. If one cannot be started, waits for the
// others, then fails with kEnvironment.
Result<void> run_side_by_side(const std::vector<std::vector<std::string>>& commands, bool quiet);

}  // namespace kernelpro
