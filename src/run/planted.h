// SPDX-License-Identifier: Apache-2.0
// Connects a search to a run: the result it gets for each candidate, and the search of a stored
// run, rebuilt.
#pragma once

#include <cstdint>
#include <vector>

#include "run/store/ledger.h"
#include "run/store/store.h"
#include "search/search.h"

namespace kernelpro {

// The result that a search gets for a candidate. What `feedback` hides from the writer does not
// guide the search either. REQUIRES: the ledger has the candidate.
NodeResult node_result(const Ledger& ledger, std::int64_t id, Feedback feedback);

// Adds evaluated candidates to a search. One without a parent becomes the root, or a child of the
// root: the other candidates that a run begins with.
class Planted {
 public:
  // `search` must be empty; null: nothing is placed.
  explicit Planted(Search* search) : search_(search) {}
  void place(std::int64_t parent, std::int64_t id, const NodeResult& node);

 private:
  Search* search_;
  std::int64_t root_ = 0;
};

// The nodes of a stored run in the order of evaluation, as a resume would see them, with the reason
// why a node is no longer expanded. Lines that a proposer has exhausted look open: it reports that
// again when asked. Fails with kStore, or with kBadInput when this version does not know the run's
// search.
Result<std::vector<SearchNode>> stored_nodes(const Store& store);

}  // namespace kernelpro
