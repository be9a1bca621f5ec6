// SPDX-License-Identifier: Apache-2.0
// Which models write, and within what limits: a plain value that the run's store keeps. It holds no
// keys; those come from the environment (write/model/spec.h).
#pragma once

#include <cstdint>
#include <string>

namespace kernelpro {

struct RoleSettings {
  // As a user names models ("anthropic:MODEL"). REQUIRES: coder; "" for another: as the coder.
  std::string planner, coder, fixer;
  bool one_call = false;  // the coder chooses what to try as well; no planner is asked
  int ideas = 3;          // for a parent, at a time
  int fixes = 2;          // repairs of what failed, one after the other
  int tune = 4;           // settings of a source's knobs that the tuner tries before new ideas
  int tool_rounds = 8;    // in which one answer may look things up
  // Over all models and all sittings; 0: no limit.
  std::int64_t max_tokens = 0;
  double max_usd = 0;
  std::int64_t max_calls = 0;
};

}  // namespace kernelpro
