// SPDX-License-Identifier: Apache-2.0
// What a run asks of its proposer: requests from the ledger, the search and what was learned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/proposal.h"
#include "run/bench.h"
#include "run/parts.h"
#include "run/planted.h"

namespace kernelpro {

// A request with copies of all that changes while the run continues: for a writer's own thread.
class OwnRequest {
 public:
  explicit OwnRequest(const ProposalRequest& of);
  OwnRequest(const OwnRequest&) = delete;
  OwnRequest& operator=(const OwnRequest&) = delete;

  ProposalRequest request;  // points into this

 private:
  Known parent_;
  std::vector<Known> history_;  // whole
  std::vector<Candidate> pending_;
  std::vector<Fact> lately_;
  Machine machine_;
  Evidence evidence_;
};

class Asking {
 public:
  // All must outlive this.
  Asking(const LoopParts& parts, Bench* bench, Planted* search);

  // A request for changes of `parent`, in the search's present turn. `pending`: candidates that
  // have no result yet. It points into the ledger and into this, and is valid until the next
  // request or evaluation.
  ProposalRequest request(std::int64_t parent, std::vector<const Candidate*> pending);

  // See run/loop.h.
  Result<std::vector<std::string>> write_requests(const std::string& folder, int count);

 private:
  const LoopParts& parts_;
  Bench& bench_;
  Planted& search_;
  const std::string header_;  // task.h of the largest timed case
  Known bare_;                // the parent without its diagnosis, where writers do not get that
};

}  // namespace kernelpro
