// SPDX-License-Identifier: Apache-2.0
// Compiler logs, made readable: a person or a model should see the first causes, with their source
// lines, in their own file's name and line numbers. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// The first causes: errors first (with the lines that belong to them), then warnings while there is
// room; at most about `max_bytes`. Folders in `hidden_folders` vanish from paths. Understands gcc,
// clang, nvcc, NVRTC and GNU ld; what it does not understand is kept from the beginning.
std::string trim_diagnostics(std::string_view log, const std::vector<std::string>& hidden_folders,
                             std::size_t max_bytes = 4096);

}  // namespace kernelpro
