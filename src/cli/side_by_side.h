// SPDX-License-Identifier: Apache-2.0
// Several commands of ours at once, on this terminal.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// Runs all to their ends; they print where we print, or nowhere when `quiet`. A stop that was asked
// of us (run/run.h) is passed on. Fails with kEnvironment when one cannot be started; what the
// others do is waited for first.
Result<void> run_side_by_side(const std::vector<std::vector<std::string>>& commands, bool quiet);

}  // namespace kernelpro
