// SPDX-License-Identifier: Apache-2.0
// MCP over standard input and output: one client, one JSON text per line.
#pragma once

#include "base/error.h"
#include "serve/mcp/desk.h"

namespace kernelpro {

// Serves until the client closes its end or a signal arrives; then cancels every call and ends
// every child process. Standard output carries only the protocol: other output of this process goes
// to standard error.
Result<void> serve_stdio(const DeskSettings& settings);

// The same between two descriptors, for tests. `stop`: becomes readable to end serving; -1: never.
Result<void> serve_frames(const DeskSettings& settings, int in, int out, int stop);

}  // namespace kernelpro
