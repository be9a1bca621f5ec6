// SPDX-License-Identifier: Apache-2.0
// Which proposer writes, and its inputs.
#pragma once

#include <optional>
#include <string>

#include "core/candidate/dialect.h"
#include "core/proposal/proposal.h"
#include "write/roles.h"
#include "write/tuner/tuner.h"

namespace kernelpro {

struct WriterSettings {
  std::string proposer = kTunerName;  // run/proposers.h
  std::string replay_from;            // run directory, for replay
  double exchange_wait_s = 3600;
  RoleSettings roles;  // for models; their budgets also act as stoppers
  Feedback feedback = Feedback::kDiagnosed;
  std::string prompts;             // folder of prompts that replace the embedded ones; "" = none
  std::optional<Dialect> dialect;  // to write in; none: the target's own language
  bool memory = true;              // false: a writer sees only the parent, not what else was tried
};

}  // namespace kernelpro
