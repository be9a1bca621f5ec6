// SPDX-License-Identifier: Apache-2.0
// Header libraries that candidates may include.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// `named` as absolute paths, then the `include` folder (or the root, if there is none) of every
// usable library of `kernelpro knowledge`. Fails with kBadInput when a named folder does not exist.
Result<std::vector<std::string>> include_dirs(const std::vector<std::string>& named);

}  // namespace kernelpro
