// SPDX-License-Identifier: Apache-2.0
// For tests of searches.
#pragma once

#include <cstdint>
#include <optional>

#include "search/search.h"

namespace kernelpro::searching {

// The parent of the expansion that a search begins.
inline std::optional<std::int64_t> start(Search& search) {
  const std::optional<Turn> turn = search.start();
  return turn ? std::optional(turn->parent) : std::nullopt;
}

}  // namespace kernelpro::searching
