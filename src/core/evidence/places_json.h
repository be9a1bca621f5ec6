// SPDX-License-Identifier: Apache-2.0
// For .cc files only: `Places` in JSON, as evidence stores them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "core/evidence/places.h"

namespace kernelpro {

Json source_line_json(const SourceLine& line);
Json places_to_json(const Places& places);

// nullopt: not places, or of a basis unknown to this version. Single entries that cannot be read
// are skipped, shares are brought into 0..1. Safe on any value.
std::optional<Places> places_from_json(const nlohmann::json& json);

Json roles_to_json(const std::vector<WarpRole>& roles);
std::vector<WarpRole> roles_from_json(const nlohmann::json& json);

// By metric; a line's text stands where it is first named. Reading skips what it cannot read, and
// is safe on any value.
Json lines_to_json(const std::map<std::string, CodeLines>& lines);
std::map<std::string, CodeLines> lines_from_json(const nlohmann::json& json);
// "kernel.cu:41, kernel.cu:44"
CodeLines lines_from_text(const std::string& text);

// At most kMostSites; the same holds.
Json sites_to_json(const std::vector<SourceSite>& sites);
std::vector<SourceSite> sites_from_json(const nlohmann::json& json);

}  // namespace kernelpro
