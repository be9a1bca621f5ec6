// SPDX-License-Identifier: Apache-2.0
// Copies a run so that it can be continued elsewhere. Works alongside an active run, from any
// process; blocks while it copies.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// Copies the store, in the state between two evaluations, and the exchange folder, except for links
// and unfinished files (*.tmp), into the new or empty folder `to`. Fails with kStore when either
// cannot be read or written; `to` may then hold a part.
Result<void> pack_run(const std::string& from, const std::string& to);

}  // namespace kernelpro
