// SPDX-License-Identifier: Apache-2.0
// What a run asks of its proposer: requests from the ledger, the search and what was learned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/proposal.h"
#include "run/bench.h"
#include "run/parts.h"

namespace kernelpro {

class Asking {
 public:
  // Both must outlive this.
  Asking(const LoopParts& parts, Bench* bench);

  // A request for changes of `parent`, in the search's present turn. `pending`: candidates that
  // have no result yet. It points into the ledger, and is valid until the next evaluation.
  ProposalRequest request(std::int64_t parent, std::vector<const Candidate*> pending);

  // See run/loop.h.
  Result<std::vector<std::string>> write_requests(const std::string& folder, int count);

 private:
  const LoopParts& parts_;
  Bench& bench_;
  const std::string header_;  // task.h of the largest timed case
};

}  // namespace kernelpro
