// SPDX-License-Identifier: Apache-2.0
// The table of searches. To add one: a file NAME.cc (NAME with _ for -) and a row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "search/parameters.h"
#include "search/search.h"

namespace kernelpro {

// The seed drives the random searches; the others ignore it.
using SearchFactory = std::unique_ptr<Search>(const SearchParameters& parameters,
                                              std::uint64_t seed);

struct SearchRow {
  std::string_view name;
  std::string_view summary;
  SearchFactory* make;
};
std::span<const SearchRow> searches();
std::string search_names();  // "mcts|branches|..."

// Fails with kBadInput on an unknown name (the message lists the known ones) or contradictory
// parameters.
Result<std::unique_ptr<Search>> make_search(std::string_view name,
                                            const SearchParameters& parameters, std::uint64_t seed);

// Uses a preset's parameters. `name`: "" = the search that the preset is for. Also fails with
// kBadInput when the preset is for another search.
Result<std::unique_ptr<Search>> make_preset_search(std::string_view name, std::string_view preset,
                                                   std::uint64_t seed);

}  // namespace kernelpro
