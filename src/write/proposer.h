// SPDX-License-Identifier: Apache-2.0
// Proposers that get sources from elsewhere: models, files, recordings.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/proposal.h"
#include "core/proposer.h"
#include "write/prompt/prompts.h"
#include "write/roles.h"

namespace kernelpro {

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
  std::string knowledge;            // folder of indexes (write/knowledge/knowledge_base.h)
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
