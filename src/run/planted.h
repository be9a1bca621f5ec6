// SPDX-License-Identifier: Apache-2.0
// A search in its run: what it is told of each candidate, and the search of a stored run, rebuilt.
#pragma once

#include <cstdint>
#include <vector>

#include "run/store/ledger.h"
#include "run/store/store.h"
#include "search/search.h"

namespace kernelpro {

// What a search is told of a candidate. What a writer is not told does not guide the search either.
// REQUIRES: the ledger has it.
NodeResult node_result(const Ledger& ledger, std::int64_t id, Feedback feedback);

// Puts evaluated candidates into a search. One without a parent is its root, or stands right below
// the root: the others that a run begins with.
class Planted {
 public:
  // `search` must be empty; null where nothing is placed.
  explicit Planted(Search* search) : search_(search) {}
  void place(std::int64_t parent, std::int64_t id, const NodeResult& node);

 private:
  Search* search_;
  std::int64_t root_ = 0;
};

// The nodes of a stored run, as a resume would have them, in the order of evaluation: also why
// nothing more is tried below one. Lines that a proposer has exhausted look open: it says so again
// when it is asked. Fails with kStore, or with kBadInput when the run's search is not known here.
Result<std::vector<SearchNode>> stored_nodes(const Store& store);

}  // namespace kernelpro
