// SPDX-License-Identifier: Apache-2.0
// The loop itself, with everything that it introduces to each other handed in.
#pragma once

#include <vector>

#include "diagnose/record.h"
#include "propose/proposer.h"
#include "run/run.h"
#include "run/store.h"
#include "run/target.h"
#include "search/search.h"

namespace kernelpro {

struct LoopParts {
  const Task* task = nullptr;
  const RunSettings* settings = nullptr;
  Store* store = nullptr;    // open for writing; may hold a run to go on with
  Target* target = nullptr;  // prepared
  Proposer* proposer = nullptr;
  Search* search = nullptr;  // empty
  ToolRecord record;         // that the run began with
  Observer observer;         // may be empty
  // The loop's own milliseconds for each evaluation of this sitting; may be null.
  std::vector<double>* own_ms = nullptr;
};

// Runs to a stopper, an interruption or an error of the machine; whatever was evaluated is stored
// by then.
Result<RunResult> run_loop(const LoopParts& parts);

}  // namespace kernelpro
