// SPDX-License-Identifier: Apache-2.0
// What a run's past calls imply for the next: which failed candidates may be repaired, which ideas
// led nowhere, which paid answers are still unused. Depends on the calls only, so that a resumed
// run remembers the same. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/proposal/proposal.h"

namespace kernelpro {

class CallMemory {
 public:
  // `past`: the calls of earlier sittings.
  explicit CallMemory(const std::vector<ModelCall>& past);

  // The answer that an earlier sitting got to the same prompt from the same model; given out once.
  std::optional<ModelCall> take(const ModelCall& asked);
  void learn(const ModelCall& call);
  int next_request();  // 1, 2, ...: the number of the next request
  // The content hash of a candidate of this run; cached.
  const std::string& hash_of(const Known& known);

  // Failed candidates of models, oldest first, except those already repaired, those with a failed
  // attempt at repair, and those at the end of a chain of `fixes` repairs.
  History to_repair(const History& history, int fixes);
  // One line per idea that gave no candidate through the model's fault; the latest ones.
  std::string lost_text() const;

 private:
  std::map<std::string, ModelCall> unused_;      // by role, model and prompt
  std::map<std::string, std::int64_t> repairs_;  // content hash -> the candidate that it repairs
  std::map<std::int64_t, std::string> hashes_;   // by candidate
  std::set<std::int64_t> given_up_;
  std::map<std::string, std::string> lost_;  // request -> line
  int last_request_ = 0;
};

}  // namespace kernelpro
