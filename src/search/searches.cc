// SPDX-License-Identifier: Apache-2.0
#include "search/searches.h"

#include "base/text.h"

namespace kernelpro {

// Each is in the file with its name.
SearchFactory make_mcts, make_branches, make_beam, make_greedy, make_best_of_n, make_random;

namespace {

// The first is the default.
constexpr SearchRow kSearches[] = {
    {"mcts", "Monte Carlo tree search: what worked gets more tries, diagnoses are priors.",
     make_mcts},
    {"branches", "Rounds of ideas, each implemented several times; a bank of the best seeds each.",
     make_branches},
    {"beam", "The fastest few are tried in turn.", make_beam},
    {"greedy", "Always the fastest.", make_greedy},
    {"best-of-n", "Independent tries from the start.", make_best_of_n},
    {"random", "Any correct candidate, each as likely as the others; for comparison.", make_random},
};

}  // namespace

std::span<const SearchRow> searches() { return kSearches; }
std::string search_names() { return names_of(kSearches); }

Result<std::unique_ptr<Search>> make_search(std::string_view name,
                                            const SearchParameters& parameters,
                                            std::uint64_t seed) {
  KP_TRY(check(parameters));
  for (const SearchRow& row : kSearches) {
    if (row.name == name) return row.make(parameters, seed);
  }
  return fail(ErrorKind::kBadInput, "there is no search \"" + std::string(name) + "\"",
              "use one of: " + replace_all(search_names(), "|", ", "));
}

Result<std::unique_ptr<Search>> make_preset_search(std::string_view name, std::string_view preset,
                                                   std::uint64_t seed) {
  KP_ASSIGN(const auto found, find_preset(preset));
  const std::string_view own = found->search.empty() ? kSearches[0].name : found->search;
  const std::string_view chosen = name.empty() ? own : name;
  auto search = make_search(chosen, found->parameters(), seed);
  if (search && !found->search.empty() && chosen != own) {
    return fail(ErrorKind::kBadInput,
                "the preset " + std::string(preset) + " is a setting of " + std::string(own) +
                    ", not of " + std::string(chosen),
                "leave out the search, or use the preset default");
  }
  return search;
}

}  // namespace kernelpro
