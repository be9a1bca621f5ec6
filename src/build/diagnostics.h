// SPDX-License-Identifier: Apache-2.0
// Compiler logs, made readable: a person or a model should see the first causes, with their source
// lines, in their own file's name and line numbers. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// The first causes: errors with the lines that belong to them, or, where there is none, warnings;
// at most about `max_bytes`. Folders in `hidden_folders` vanish from paths, template backtraces
// keep their ends, notes are few, repetitions and what follows from the first errors are left out,
// symbol names in ptxas's and the linker's lines are readable. Understands gcc, clang, nvcc, NVRTC,
// ptxas and GNU ld; what it does not understand is kept from the beginning.
std::string trim_diagnostics(std::string_view log, const std::vector<std::string>& hidden_folders,
                             std::size_t max_bytes = 4096);

// ptxas names lines of its own input. Where that was made with -lineinfo, they become lines of the
// source: "ptxas ./kernel.ptx, line 30; error : ..." -> "kernel.cu(2): error: ptxas: ...", with the
// instruction below it.
std::string with_source_lines(std::string_view log, std::string_view ptx);

// gcc shows source lines by their numbers in the file that it was given, which `#line` moves: the
// lines that it shows of `file` become those of `source`, the file as its author has it.
std::string with_shown_lines(std::string_view log, std::string_view file, std::string_view source);

}  // namespace kernelpro
