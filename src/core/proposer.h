// SPDX-License-Identifier: Apache-2.0
// The interface of every proposer: it turns a parent and its diagnosis into candidates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/proposal.h"

namespace kernelpro {

class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual std::string name() const = 0;
  // One sentence for the report about who wrote what ("the structure was in the source; the
  // embedded tuner chose the numbers").
  virtual std::string credit() const = 0;
  // Up to `request.wanted` proposals, never one whose content hash the history has. Empty: nothing
  // to add for this parent. Deterministic proposers depend on the request alone, so that a resumed
  // run goes on as the first would have. May block (a person or a model writes).
  virtual Result<std::vector<Proposal>> propose(const ProposalRequest& request) = 0;
  // Why nothing more will come, whatever the parent; nullopt while something may.
  virtual std::optional<std::string> finished() const { return std::nullopt; }
};

}  // namespace kernelpro
