// SPDX-License-Identifier: Apache-2.0
// Who writes the next candidate. Every proposer is behind this one interface.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/knobs.h"
#include "core/proposal.h"
#include "propose/prompts.h"
#include "propose/roles.h"

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

// Moves the knobs that the source declares: the first answers the parent's findings, the others
// are those that promise most after all that was measured of the source.
std::unique_ptr<Proposer> make_tuner();

// Every setting of the start's knobs, once, in an order drawn from the seed.
std::unique_ptr<Proposer> make_sweep();
// How many those are. Fails with kBadInput when there is no knob, or far too many settings.
Result<std::size_t> sweep_size(const std::vector<Knob>& knobs);

struct ExchangeSettings {
  std::string folder;    // run/exchange: one folder per request
  double wait_s = 3600;  // how long a reply is waited for; 0: only what lies there
  double poll_s = 0.2;
  bool write = true;                // false: no requests are written, only replies are picked up
  std::function<bool()> cancelled;  // asked while waiting; may be empty
  std::function<void(const std::string&)> note;  // told how to reply, once a request; may be empty
  // Told of each reply that cannot be used, and why; may be empty.
  std::function<void(const std::string&)> refused;
  Prompts prompts;
};
// Writes request folders and picks up replies; any writer that reads and writes files can serve it.
std::unique_ptr<Proposer> make_exchange(const ExchangeSettings& settings);
// One more request in `folder` (run/exchange), for request.parent and request.focus; its path.
Result<std::string> write_request(const std::string& folder, const ProposalRequest& request,
                                  const Prompts& prompts);
// What the requests in `folder` for this parent asked to try, oldest first; "" where it was free.
std::vector<std::string> requested(const std::string& folder, const Candidate& parent);

struct ModelSettings {
  RoleSettings roles;
  Prompts prompts;
  std::string knowledge;            // folder of indexes (knowledge/knowledge_base.h)
  std::vector<ModelCall> past;      // of earlier sittings: paid, and not asked again
  std::function<bool()> cancelled;  // asked often, from any thread; may be empty
  // Told of each call at once, from any thread, one at a time; may be empty. What it fails with
  // ends the run.
  std::function<Result<void>(const ModelCall&)> record;
  std::function<void(const std::string&)> note;  // what models did, for people; may be empty
};
// Models that plan, write and repair. A request that a model answered in an earlier sitting, word
// for word, and of which the run has no candidate yet, gets that answer again. Several candidates
// are written at once, in threads. Fails with kBadInput (a model's name; money limited and a price
// unknown) and kEnvironment (no key, no libcurl).
Result<std::unique_ptr<Proposer>> make_model(ModelSettings settings);

// Hands out recorded candidates in order, whatever the parent.
std::unique_ptr<Proposer> make_replay(std::vector<Candidate> recorded);

}  // namespace kernelpro
