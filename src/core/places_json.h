// SPDX-License-Identifier: Apache-2.0
// For .cc files only: `Places` in JSON, as evidence stores them.
#pragma once

#include <optional>

#include "core/json.h"
#include "core/places.h"

namespace kernelpro {

Json places_to_json(const Places& places);

// nullopt: not places, or of a basis unknown to this version. Single entries that cannot be read
// are skipped, shares are brought into 0..1. Safe on any value.
std::optional<Places> places_from_json(const nlohmann::json& json);

}  // namespace kernelpro
