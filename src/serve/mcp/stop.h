// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as something that a server can wait for beside its clients.
#pragma once

#include "base/files.h"

namespace kernelpro {

// From now on the first of these signals makes the descriptor readable; the second ends the
// process. Call once; the descriptor lives as long as the process.
int stop_descriptor();

}  // namespace kernelpro
