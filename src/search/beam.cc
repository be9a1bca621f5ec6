// SPDX-License-Identifier: Apache-2.0
// The fastest few that have tries left, in turn. The beam is no list that is kept but follows from
// the tree at every moment, so that slow expansions, resumed runs and exhausted members need no
// special care: who has had his tries leaves it, the next fastest takes the place, and when all
// have had theirs, all get as many again.
#include "search/searches.h"
#include "search/tree.h"

namespace kernelpro {

namespace {

class Beam : public TreeSearch {
 public:
  explicit Beam(const SearchParameters& parameters) : TreeSearch(parameters) {}
  std::string name() const override { return "beam"; }

 private:
  int choose() override;
};

int Beam::choose() {
  if (ranked().empty()) return fastest();
  for (int allowed = parameters().beam_tries;; allowed += parameters().beam_tries) {
    int members = 0;
    int chosen = -1;
    for (const auto& [time, at] : ranked()) {
      if (tries(at) >= allowed) continue;
      // The one with the fewest tries; the faster of equals.
      if (chosen < 0 || tries(at) < tries(chosen)) chosen = at;
      if (++members == parameters().beam_width) break;
    }
    if (chosen >= 0) return chosen;
  }
}

}  // namespace

std::unique_ptr<Search> make_beam(const SearchParameters& parameters, std::uint64_t) {
  return std::make_unique<Beam>(parameters);
}

}  // namespace kernelpro
