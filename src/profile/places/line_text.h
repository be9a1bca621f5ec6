// SPDX-License-Identifier: Apache-2.0
// The texts of source lines, as places show them. Any bytes are safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/places.h"

namespace kernelpro {

// Whether a file's name, without folders, has the extension of a source.
bool is_source(const std::string& name);

// The text of a source line; "": not at hand.
using LineText = std::function<std::string(const std::string& file, int line)>;
// Lines as the compiler numbers them: `#line N`, which apply_knobs writes behind the values of
// knobs, makes the next one line N. None behind one that names another file.
std::vector<std::string> compiled_lines(std::string_view text);
// compiled_lines of sources in `folder`, read once when first asked for. Only names without folders
// and with a source file's extension are read.
LineText lines_in(const std::string& folder);

// Gives a line its text, clipped: within an asm statement the instruction that it executes, as
// "asm mbarrier.try_wait...", since its strings and operands say little one by one.
void add_text(const LineText& text, SourceLine* line);

}  // namespace kernelpro
