// SPDX-License-Identifier: Apache-2.0
// Independent tries from the root: the equivalent of asking a writer again and again.
#include "search/searches.h"
#include "search/tree.h"

namespace kernelpro {

namespace {

class BestOfN : public TreeSearch {
 public:
  explicit BestOfN(const SearchParameters& parameters) : TreeSearch(parameters) {}
  std::string name() const override { return "best-of-n"; }

 private:
  int choose() override {
    const bool enough = parameters().tries > 0 && tries(0) >= parameters().tries;
    return all()[0].open && !enough ? 0 : -1;
  }
};

}  // namespace

std::unique_ptr<Search> make_best_of_n(const SearchParameters& parameters, std::uint64_t) {
  return std::make_unique<BestOfN>(parameters);
}

}  // namespace kernelpro
