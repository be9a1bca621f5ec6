// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM as a descriptor that a server polls along with its clients.
#pragma once

#include "base/files.h"

namespace kernelpro {

// Installs the handlers: the first signal makes the descriptor readable, the second ends the
// process. Call once; the descriptor lives as long as the process.
int stop_descriptor();

}  // namespace kernelpro
