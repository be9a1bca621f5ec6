// SPDX-License-Identifier: Apache-2.0
// What questions to models cost and came to. Plain values, pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/proposal.h"
#include "write/model/budget.h"
#include "write/model/chat.h"

namespace kernelpro {

// Of one ModelCall, which is one request to the API and one more for each round of tools.
struct CallUsage {
  std::int64_t requests = 0;  // what a budget counts as calls
  std::int64_t attempts = 0;
  Usage tokens;
  double cost_usd = 0;
  bool cost_known = true;  // false: some of it has no known price
  double seconds = 0;
  std::map<std::string, int> tools;  // used, by name; "unknown" and "refused" beside them
};
std::string usage_to_json(const CallUsage& usage, const std::string& role);
// What is missing or damaged counts as nothing.
CallUsage usage_from_json(const std::string& json);

// What was spent on all of them: where a budget goes on from.
Spend spend_of(const std::vector<ModelCall>& calls);

// "7 questions to models (1 planner, 5 coder, 1 fixer): 9 requests, 48210 tokens, $0.1234; 2 came
// to nothing: 1 no-code, 1 rate-limited"; "" when there are none.
std::string calls_text(const std::vector<ModelCall>& calls);

}  // namespace kernelpro
