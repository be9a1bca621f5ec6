// SPDX-License-Identifier: Apache-2.0
// Proposers whose sources come from elsewhere: models, files, recordings.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/proposal/proposal.h"
#include "core/proposal/proposer.h"
#include "write/prompt/prompts.h"
#include "write/roles.h"

namespace kernelpro {

// As in run/proposers.h, and in the origin of their candidates.
inline constexpr const char* kExchangeName = "exchange";
// How the reason begins that ends a run whose requests wait (Proposer::finished).
inline constexpr const char* kNoReply = "no reply came within ";
inline constexpr const char* kModelName = "model";
inline constexpr const char* kReplayName = "replay";

struct ExchangeSettings {
  std::string folder;    // run/exchange: one folder per request
  double wait_s = 3600;  // limit for a reply; 0: only replies already there
  double poll_s = 0.2;
  int tune = 0;                       // settings of a reply with knobs (write/tuning.h)
  bool write = true;                  // false: only picks up replies, and writes no requests
  std::vector<ExchangeRequest> past;  // of earlier sittings, which may still be answered
  std::function<bool()> cancelled;    // polled while waiting; may be empty
  Prompts prompts;
};
// Writes request folders and picks up replies; any writer that reads and writes files can serve it.
// Notes: "waiting", how to reply, once per request; "refused", each unusable reply and the reason.
std::unique_ptr<Proposer> make_exchange(ExchangeSettings settings);
// The folders of the requests in this exchange folder of which no answer was measured, in order.
std::vector<std::string> open_requests(const std::string& folder);
// The next request in `folder` (run/exchange), for request.parent and request.focus. Writes
// nothing: it is recorded first, since it may be answered once its folder is there.
ExchangeRequest next_request(const std::string& folder, const std::vector<ExchangeRequest>& past,
                             const ProposalRequest& request, const Prompts& prompts);
// Writes its folder and returns that. `request`: the one that it was made of.
Result<std::string> write_request(const std::string& folder, const ExchangeRequest& asked,
                                  const ProposalRequest& request);

struct ModelSettings {
  RoleSettings roles;
  Prompts prompts;
  std::string knowledge;            // folder of indexes (write/knowledge/knowledge_base.h)
  std::vector<ModelCall> past;      // of earlier sittings: paid, not repeated
  std::function<bool()> cancelled;  // polled from any thread; may be empty
};
// Models that plan, write and repair. Each call is given to the run before its answer is used. A
// request identical to one answered in an earlier sitting, whose candidate the run does not have
// yet, reuses that answer. Several candidates are written concurrently, in threads. Notes: "model",
// each unusable answer. Fails with kBadInput (a model's name; a money limit with an unknown
// price) and kEnvironment (no key, no libcurl).
Result<std::unique_ptr<Proposer>> make_model(ModelSettings settings);
// Whether the roles' models can be asked at all, at no cost and within seconds for each. Fails with
// kEnvironment when nobody answers at an address or a key is refused, and with kBadInput when a
// server does not know the model; what a server keeps to itself is found by the first call.
Result<void> reach_models(const RoleSettings& roles);

// Hands out recorded candidates in order, whatever the parent.
std::unique_ptr<Proposer> make_replay(std::vector<Candidate> recorded);

}  // namespace kernelpro
