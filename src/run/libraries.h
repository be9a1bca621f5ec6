// SPDX-License-Identifier: Apache-2.0
// Header libraries that candidates may include from.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// `named` made absolute, then the `include` folder (where there is none, the root) of every usable
// library of `kernelpro knowledge`. Fails with kBadInput when a named folder is not there.
Result<std::vector<std::string>> include_dirs(const std::vector<std::string>& named);

}  // namespace kernelpro
