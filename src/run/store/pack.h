// SPDX-License-Identifier: Apache-2.0
// A copy of a run that can be taken elsewhere and gone on with. Beside a run that goes on, from any
// process; blocks while it copies.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// Copies the store as it is between two evaluations and the exchange folder as it lies there, but
// for links and files that a writer has not finished (*.tmp), into the new or empty folder `to`.
// Fails with kStore when either cannot be read or written; `to` may then hold a part.
Result<void> pack_run(const std::string& from, const std::string& to);

}  // namespace kernelpro
