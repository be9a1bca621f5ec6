// SPDX-License-Identifier: Apache-2.0
// Makes compiler logs readable: a person or a model should see the root causes, with source lines,
// under their own file's name and line numbers. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// Keeps the root causes: errors with their lines, or warnings if there are none; at most about
// `max_bytes`. Strips `hidden_folders` from paths, keeps the ends of template backtraces and few
// notes, drops repetitions and follow-on errors, demangles symbols in ptxas and linker lines.
// Understands gcc, clang, nvcc, NVRTC, ptxas and GNU ld; of anything else it keeps the beginning.
std::string trim_diagnostics(std::string_view log, const std::vector<std::string>& hidden_folders,
                             std::size_t max_bytes = 4096);

// ptxas reports lines of the PTX. If that was made with -lineinfo, maps them to source lines:
// "ptxas ./kernel.ptx, line 30; error : ..." -> "kernel.cu(2): error: ptxas: ...", with the
// instruction below it.
std::string with_source_lines(std::string_view log, std::string_view ptx);

// gcc looks up the source lines that it shows by number in the file that it compiled, which `#line`
// shifts. Replaces the lines shown of `file` by those of `source`, the author's file.
std::string with_shown_lines(std::string_view log, std::string_view file, std::string_view source);

}  // namespace kernelpro
