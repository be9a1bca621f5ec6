// SPDX-License-Identifier: Apache-2.0
// Proposers whose sources come from elsewhere: models, files, recordings.
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
  double wait_s = 3600;  // limit for a reply; 0: only replies already there
  double poll_s = 0.2;
  bool write = true;                // false: only picks up replies, and writes no requests
  std::function<bool()> cancelled;  // polled while waiting; may be empty
  std::function<void(const std::string&)> note;  // how to reply, once per request; may be empty
  // Gets each unusable reply and the reason; may be empty.
  std::function<void(const std::string&)> refused;
  Prompts prompts;
};
// Writes request folders and picks up replies; any writer that reads and writes files can serve it.
std::unique_ptr<Proposer> make_exchange(const ExchangeSettings& settings);
// Adds one request in `folder` (run/exchange), for request.parent and request.focus; returns its
// path.
Result<std::string> write_request(const std::string& folder, const ProposalRequest& request,
                                  const Prompts& prompts);
// The findings that requests in `folder` asked to address in this parent, oldest first; empty for a
// free choice.
std::vector<FindingRef> requested(const std::string& folder, const Candidate& parent);

struct ModelSettings {
  RoleSettings roles;
  Prompts prompts;
  std::string knowledge;            // folder of indexes (write/knowledge/knowledge_base.h)
  std::vector<ModelCall> past;      // of earlier sittings: paid, not repeated
  std::function<bool()> cancelled;  // polled from any thread; may be empty
  // Called right after each model call, from any thread, one at a time; may be empty. Its error
  // ends the run.
  std::function<Result<void>(const ModelCall&)> record;
  std::function<void(const std::string&)> note;  // the models' activity, for display; may be empty
};
// Models that plan, write and repair. A request identical to one answered in an earlier sitting,
// whose candidate the run does not have yet, reuses that answer. Several candidates are written
// concurrently, in threads. Fails with kBadInput (a model's name; a money limit with an unknown
// price) and kEnvironment (no key, no libcurl).
Result<std::unique_ptr<Proposer>> make_model(ModelSettings settings);

// Hands out recorded candidates in order, whatever the parent.
std::unique_ptr<Proposer> make_replay(std::vector<Candidate> recorded);

}  // namespace kernelpro
