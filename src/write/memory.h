// SPDX-License-Identifier: Apache-2.0
// What the calls of a run so far mean for the next: which failed candidates may be repaired, which
// ideas came to nothing, which answers are paid and were not used. A function of the calls alone,
// so that a resumed run remembers the same. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/proposal.h"

namespace kernelpro {

class CallMemory {
 public:
  // `past`: the calls of earlier sittings.
  explicit CallMemory(const std::vector<ModelCall>& past);

  // The answer that an earlier sitting got to the same prompt from the same model; once.
  std::optional<ModelCall> take(const ModelCall& asked);
  void learn(const ModelCall& call);
  int next_request();  // 1, 2, ...: the number of the next request
  // The content hash of a candidate of this run; worked out once.
  const std::string& hash_of(const Known& known);

  // Candidates of models that failed, oldest first, but for those that are repaired already, that
  // no answer repaired, or that end a chain of `fixes` repairs.
  std::vector<const Known*> to_repair(const std::vector<const Known*>& history, int fixes);
  // A line for each idea of which no candidate came, by the model's fault; the latest ones.
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
