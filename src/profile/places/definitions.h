// SPDX-License-Identifier: Apache-2.0
// What the names on a line of source stand for: constants, macros, short functions and variables,
// each with the line that defines it. A pitch that makes banks conflict, or an index function that
// makes lanes stride, stands there and not where warps wait. What is a template's parameter is
// defined where its argument is chosen. Read by the look of the text, without
// a compiler: a definition may be missing. Pure; any text is safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/places.h"

namespace kernelpro {

// SiteKind::kDefinition and kVariable for the names on these lines (from 1), for the names in their
// definitions, and once more; at most kMostDefinitions, in the order of the lines. Of several
// definitions of one name, the last one before its use.
std::vector<SourceSite> definition_sites(const std::string& file, std::string_view text,
                                         const std::vector<int>& used_at);
inline constexpr std::size_t kMostDefinitions = 80;
// These sites of the file; in place of a depth or size that only passes a template's parameter on,
// the lines that choose its argument.
std::vector<SourceSite> followed(std::string_view text, const std::vector<SourceSite>& sites);

}  // namespace kernelpro
