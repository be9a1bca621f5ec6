// SPDX-License-Identifier: Apache-2.0
// Live progress: a status that is redrawn on a terminal, plain lines in a pipe, one JSON object a
// line for programs. Each line is flushed as it is written.
#pragma once

#include <cstdio>
#include <string>

#include "run/run.h"

namespace kernelpro {

enum class DisplayKind { kTerminal, kLines, kJson };

// json, or what `out` is.
DisplayKind display_kind(bool json, std::FILE* out);

// Columns of the terminal; 80 when `out` is none.
int terminal_columns(std::FILE* out);

// The observer keeps its state alive; it writes to `out` and is used by one thread. `width`: of
// the terminal in columns, 0 = ask it.
Observer make_display(DisplayKind kind, std::FILE* out, int width = 0);

// Pure parts, for tests.
std::string status_line(const Progress& progress, int width);
std::string event_line(const Progress& progress);
std::string progress_json(const Progress& progress);

}  // namespace kernelpro
