// SPDX-License-Identifier: Apache-2.0
// The multi-branch search of Stanford CRFM ("Surprisingly fast AI-generated kernels", 2025). A
// round is a number of ideas, each implemented several times and all evaluated; the fastest and a
// bank of good kernels seed the next round and share its ideas among them. One turn is one idea.
//
// Rounds are counted in evaluations, so that a search rebuilt from them is in the same state. A
// round begins only when the whole round before it is finished.
#include "search/searches.h"
#include "search/tree.h"

namespace kernelpro {

namespace {

class Branches : public TreeSearch {
 public:
  explicit Branches(const SearchParameters& parameters) : TreeSearch(parameters) {}
  std::string name() const override { return "branches"; }

 private:
  int choose() override;
  Turn ask() const override;
  void added(int node) override;
  int round() const { return parameters().ideas * parameters().implementations; }
  // Evaluations of this round, including those in flight.
  int position() const { return (static_cast<int>(all().size()) - 1) % round() + in_flight(); }

  std::vector<int> bank_;  // fastest first
};

void Branches::added(int node) {
  if (node > 0 && node % round() != 0) return;
  bank_.clear();
  for (const auto& [time, at] : ranked()) {
    bank_.push_back(at);
    if (static_cast<int>(bank_.size()) == parameters().bank) break;
  }
}

int Branches::choose() {
  if (position() >= round()) return -1;  // the rest of this round is in flight
  const int idea = position() / parameters().implementations;
  const auto count = bank_.size();
  for (std::size_t i = 0; i < count; ++i) {
    const int at = bank_[(static_cast<std::size_t>(idea) + i) % count];
    if (all()[at].open) return at;
  }
  return fastest();
}

// The rest of the idea.
Turn Branches::ask() const {
  const int each = parameters().implementations;
  const int left = each - position() % each;
  return {0, left, left, -1};
}

}  // namespace

std::unique_ptr<Search> make_branches(const SearchParameters& parameters, std::uint64_t) {
  return std::make_unique<Branches>(parameters);
}

}  // namespace kernelpro
