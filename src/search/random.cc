// SPDX-License-Identifier: Apache-2.0
// Uniform choice among open correct candidates. The draw depends only on the seed, the number of
// evaluations and the ids, so that a resumed search draws the same.
#include "search/searches.h"
#include "search/tree.h"

namespace kernelpro {

namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Random : public TreeSearch {
 public:
  Random(const SearchParameters& parameters, std::uint64_t seed)
      : TreeSearch(parameters), seed_(seed) {}
  std::string name() const override { return "random"; }

 private:
  int choose() override {
    const std::uint64_t draw = mix(seed_ + mix(all().size() + static_cast<unsigned>(in_flight())));
    int chosen = -1;
    std::uint64_t highest = 0;
    for (const auto& [time, at] : ranked()) {
      const std::uint64_t ticket = mix(draw ^ mix(static_cast<std::uint64_t>(all()[at].id)));
      if (chosen >= 0 && ticket <= highest) continue;
      chosen = at;
      highest = ticket;
    }
    return chosen >= 0 ? chosen : fastest();
  }

  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Search> make_random(const SearchParameters& parameters, std::uint64_t seed) {
  return std::make_unique<Random>(parameters, seed);
}

}  // namespace kernelpro
