// SPDX-License-Identifier: Apache-2.0
// What a run asks of its proposer: requests from the ledger, the search and what was learned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/proposal/proposal.h"
#include "run/bench.h"
#include "run/parts.h"
#include "run/planted.h"

namespace kernelpro {

class Asking {
 public:
  // All must outlive this.
  Asking(const LoopParts& parts, Bench* bench, Planted* search);

  // `pending`: candidates that have no result yet.
  Result<ProposalRequest> request(const Turn& turn, std::vector<Candidate> pending);

  // See run/loop.h.
  Result<std::vector<std::string>> write_requests(const std::string& folder, int count);
  // The kernels that `proposer` writes now: stored, to be measured later. `pending`: those that
  // wait already. Returns how many were added.
  Result<int> write_kernels(int count, std::vector<Candidate> pending);

 private:
  Result<void> check_begun() const;
  Turn any_turn();
  Result<void> take(WriterEvent event, std::vector<Candidate>* pending);

  const LoopParts& parts_;
  Bench& bench_;
  Planted& search_;
  const std::string header_;  // task.h of the largest timed case
};

}  // namespace kernelpro
