// SPDX-License-Identifier: Apache-2.0
// The table of searches. A search is its file NAME.cc (NAME with _ for -) and one row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "search/parameters.h"
#include "search/search.h"

namespace kernelpro {

// What a search that draws lots follows; the others do not use it.
using SearchFactory = std::unique_ptr<Search>(const SearchParameters& parameters,
                                              std::uint64_t seed);

struct SearchRow {
  std::string_view name;
  std::string_view summary;
  SearchFactory* make;
};
std::span<const SearchRow> searches();

// Fails with kBadInput: an unknown name (the message lists those that there are), or parameters
// that contradict each other.
Result<std::unique_ptr<Search>> make_search(std::string_view name,
                                            const SearchParameters& parameters, std::uint64_t seed);

// By a preset's name. `name`: "" = what the preset is a setting of. Fails with kBadInput also where
// the preset is a setting of another search.
Result<std::unique_ptr<Search>> make_preset_search(std::string_view name, std::string_view preset,
                                                   std::uint64_t seed);

}  // namespace kernelpro
