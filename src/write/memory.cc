// SPDX-License-Identifier: Apache-2.0
#include "write/memory.h"

#include <algorithm>
#include <cstdlib>

#include "base/hash.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLostShown = 20;

std::string key_of_call(const ModelCall& call) {
  return std::string(model_role_name(call.role)) + "\n" + call.model + "\n" + hash_hex(call.prompt);
}

}  // namespace

CallMemory::CallMemory(const std::vector<ModelCall>& past) {
  for (const ModelCall& call : past) {
    learn(call);
    if (call.outcome == CallOutcome::kReply) unused_[key_of_call(call)] = call;
  }
}

std::optional<ModelCall> CallMemory::take(const ModelCall& asked) {
  const auto found = unused_.find(key_of_call(asked));
  if (found == unused_.end()) return std::nullopt;
  ModelCall call = std::move(found->second);
  unused_.erase(found);
  return call;
}

void CallMemory::learn(const ModelCall& call) {
  last_request_ = std::max(last_request_, std::atoi(call.request.c_str()));
  if (!call.gave.empty()) repairs_[call.gave] = call.repairs;
  lost_.erase(call.request);
  const CallOutcomeRow& outcome = call_outcome_row(call.outcome);
  if (!outcome.by_model) return;
  if (call.repairs != 0) given_up_.insert(call.repairs);
  if (call.role != ModelRole::kPlanner && !call.idea.empty()) {
    lost_[call.request] =
        "- (not written): " + call.idea + " => " + std::string(outcome.name) + "\n";
  }
}

const std::string& CallMemory::hash_of(const Known& known) {
  std::string& hash = hashes_[known.id];
  if (hash.empty()) hash = content_hash(known);
  return hash;
}

int CallMemory::next_request() { return ++last_request_; }

History CallMemory::to_repair(const History& history, int fixes) {
  std::map<std::int64_t, std::int64_t> repaired;  // candidate -> the one that it repairs
  std::set<std::int64_t> done = given_up_;
  for (const KnownPtr& known : history) {
    const auto call = repairs_.find(hash_of(*known));
    if (call == repairs_.end()) continue;
    repaired[known->id] = call->second;
    if (call->second != 0) done.insert(call->second);
  }
  History failed;
  for (const KnownPtr& known : history) {
    if (known->evaluation.correct() != nullptr || done.count(known->id) != 0) continue;
    auto link = repaired.find(known->id);
    if (link == repaired.end()) continue;  // not written by a model
    int chain = 0;
    while (link != repaired.end() && link->second != 0 && chain < fixes) {
      ++chain;
      link = repaired.find(link->second);
    }
    if (chain < fixes) failed.push_back(known);
  }
  return failed;
}

std::string CallMemory::lost_text() const {
  std::string text;
  std::size_t skip = lost_.size() > kLostShown ? lost_.size() - kLostShown : 0;
  for (const auto& [request, line] : lost_) {
    if (skip > 0) {
      --skip;
    } else {
      text += line;
    }
  }
  return text;
}

}  // namespace kernelpro
