// SPDX-License-Identifier: Apache-2.0
// The interface of every proposer: it turns a parent and its diagnosis into candidates.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "core/proposal/proposal.h"

namespace kernelpro {

class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual std::string name() const = 0;
  // Gives up to `request.wanted` proposals, none with a content hash that is in the history, each
  // as soon as it is written. None: nothing to add for this parent, unless `finished` has a reason
  // or the run asked to stop. Deterministic proposers depend on the request alone, so a resumed run
  // continues as the original would have. May block (on a person or a model).
  virtual Result<void> propose(const ProposalRequest& request, const WriterSink& give) = 0;
  // Why no more proposals will come for any parent; nullopt while some may.
  virtual std::optional<std::string> finished() const { return std::nullopt; }
};

}  // namespace kernelpro
