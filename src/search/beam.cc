// SPDX-License-Identifier: Apache-2.0
// Round-robin over the fastest few that have tries left. The beam is not a stored list but derived
// from the tree at every moment, so that slow expansions, resumed runs and exhausted members need
// no special case: a member that has used its tries leaves, the next fastest takes its place, and
// when all have used theirs, all get as many again.
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
      // Fewest tries first, then fastest.
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
