// SPDX-License-Identifier: Apache-2.0
// What the source of a kernel decides at lines from which no instruction comes (SourceSite in
// core/evidence/places.h): its definition and bounds, where it is launched, with what grid, its
// arrays, loops and stages. Read by the look of the text, without a compiler: a site may be
// missing, never in the wrong file. Pure; any text is safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/places.h"

namespace kernelpro {

// "void ns::softmax<float, 4>(float*)" -> "softmax".
std::string kernel_base_name(std::string_view demangled);

// Of the kernel with that base name, in the order of the lines. Empty unless `text` defines it.
std::vector<SourceSite> kernel_sites(const std::string& file, std::string_view text,
                                     const std::string& kernel);
// Its launches alone; `text` need not define it.
std::vector<SourceSite> launch_sites(const std::string& file, std::string_view text,
                                     const std::string& kernel);

}  // namespace kernelpro
