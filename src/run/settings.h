// SPDX-License-Identifier: Apache-2.0
// RunSettings as the store keeps them.
#pragma once

#include <optional>
#include <string>

#include "run/run.h"

namespace kernelpro {

// `directory` is left out: a run may be moved.
std::string settings_to_json(const RunSettings& settings);
// Fields that are missing keep their defaults; nullopt when the text is damaged.
std::optional<RunSettings> settings_from_json(const std::string& json);

}  // namespace kernelpro
