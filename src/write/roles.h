// SPDX-License-Identifier: Apache-2.0
// Which models write, and their limits: a plain value kept in the run's store. It holds no keys;
// those come from the environment (write/model/spec.h).
#pragma once

#include <cstdint>
#include <string>

namespace kernelpro {

struct RoleSettings {
  // Model names as the user writes them ("anthropic:MODEL"). REQUIRES: coder; "" for the others:
  // same as coder.
  std::string planner, coder, fixer;
  bool one_call = false;  // the coder also chooses what to try; no planner is used
  int ideas = 3;          // per parent, at a time
  int fixes = 2;          // successive repairs of a failure
  int tune = 8;           // knob settings of a written source (write/tuning.h)
  int tool_rounds = 8;    // of look-ups, per answer
  // Over all models and all sittings; 0: no limit.
  std::int64_t max_tokens = 0;
  double max_usd = 0;
  std::int64_t max_calls = 0;
};

}  // namespace kernelpro
