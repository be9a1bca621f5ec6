// SPDX-License-Identifier: Apache-2.0
// Cost and result of questions to models. Plain values, pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/proposal/proposal.h"
#include "write/model/budget.h"
#include "write/model/chat.h"

namespace kernelpro {

// For one ModelCall: one request to the API, plus one for each round of tools.
struct CallUsage {
  std::int64_t requests = 0;  // what a budget counts as calls
  std::int64_t attempts = 0;
  Usage tokens;
  double cost_usd = 0;
  bool cost_known = true;  // false: part of it has no known price
  double seconds = 0;
  std::map<std::string, int> tools;  // uses by name; also "unknown" and "refused"
};
std::string usage_to_json(const CallUsage& usage, ModelRole role);
// Missing or damaged fields count as zero.
CallUsage usage_from_json(const std::string& json);

// Total spent so far, for a budget to continue from.
Spend spend_of(const std::vector<ModelCall>& calls);

// "9 requests, 48210 tokens, $0.1234"; without the money where nothing has cost any.
std::string spend_text(const Spend& spend);

// "7 questions to models (1 planner, 5 coder, 1 fixer): 9 requests, 48210 tokens, $0.1234; 2 came
// to nothing: 1 no-code, 1 rate-limited"; "" when there are none.
std::string calls_text(const std::vector<ModelCall>& calls);

}  // namespace kernelpro
