// SPDX-License-Identifier: Apache-2.0
// Live progress: a redrawn status on a terminal, plain lines in a pipe, one JSON object per line
// for programs. Each line is flushed as it is written.
#pragma once

#include <cstdio>
#include <string>

#include "run/run.h"

namespace kernelpro {

enum class DisplayKind { kTerminal, kLines, kJson };

// kJson if `json`; otherwise kTerminal or kLines, depending on `out`.
DisplayKind display_kind(bool json, std::FILE* out);

// Columns of the terminal; 80 when `out` is not a terminal.
int terminal_columns(std::FILE* out);

// The observer owns its state and writes to `out`; use it from one thread. `width`: terminal width
// in columns; 0 = query the terminal.
Observer make_display(DisplayKind kind, std::FILE* out, int width = 0);

// Pure parts, for tests.
std::string status_line(const Progress& progress, int width);
std::string event_line(const Progress& progress);
std::string progress_json(const Progress& progress);

}  // namespace kernelpro
