// SPDX-License-Identifier: Apache-2.0
// MCP over standard input and output: one client, one JSON text a line.
#pragma once

#include "base/error.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

// Serves until the client closes its end or a signal comes; then every call is cancelled and every
// child process ended. Standard output carries nothing but the protocol: what anything else in this
// process prints goes to standard error.
Result<void> serve_stdio(const DeskSettings& settings);

// The same between two descriptors, for tests. `stop`: readable when it is time to end; -1: never.
Result<void> serve_frames(const DeskSettings& settings, int in, int out, int stop);

}  // namespace kernelpro
