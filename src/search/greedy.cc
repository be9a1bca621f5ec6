// SPDX-License-Identifier: Apache-2.0
// Always expands the fastest open candidate.
#include "search/searches.h"
#include "search/tree.h"

namespace kernelpro {

namespace {

class Greedy : public TreeSearch {
 public:
  explicit Greedy(const SearchParameters& parameters) : TreeSearch(parameters) {}
  std::string name() const override { return "greedy"; }

 private:
  int choose() override { return fastest(); }
};

}  // namespace

std::unique_ptr<Search> make_greedy(const SearchParameters& parameters, std::uint64_t) {
  return std::make_unique<Greedy>(parameters);
}

}  // namespace kernelpro
