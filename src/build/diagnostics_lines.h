// SPDX-License-Identifier: Apache-2.0
// Single lines of compiler logs. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

enum class LineKind {
  kError,
  kWarning,
  kNote,
  kBacktrace,  // of template instantiations
  kLeadIn,     // "In file included from", "In function"
  kNoise,      // summaries, remarks, bare failure messages
  kOther,      // source lines, carets, continuations
};
LineKind line_kind(std::string_view line);

// Whether a diagnostic points into a system header (an absolute path).
bool in_system_header(std::string_view line);

// "undefined reference to `f'" without object file names; demangled; one spelling of "error:".
std::string readable_line(const std::string& line);

// nvcc shows __global__ and the like as attributes. Restores the source line as written, and moves
// the caret in the line below accordingly.
void restore_source_line(std::string* source, std::string* caret);

}  // namespace kernelpro
