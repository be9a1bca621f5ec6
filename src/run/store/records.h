// SPDX-License-Identifier: Apache-2.0
// The contents of a run's store, as values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/machine/machine.h"
#include "core/proposal/proposal.h"
#include "core/task/task.h"
#include "run/store/held_out.h"
#include "run/store/tool_record.h"

namespace kernelpro {

enum class StoreMode { kCreate, kWrite, kRead };

struct RunHeader {
  Task task;
  TargetKind target = TargetKind::kCpu;
  Machine machine;
  std::string settings_json;  // RunSettings
  std::string created;        // UTC
  std::string version;        // of KernelPro
  std::string record_json;    // the ToolRecord that the run began with; "" = none
  std::string
      recorded_json;  // of a replay: the results in its recording (run/store/recorded.h); "" = none
  std::string facts_json =
      {};  // the facts that the run began with (core/proposal/fact.h); "" = none
  // Unique to the run; assigned at creation.
  std::string id = {};
};

// A row as stored. `known.evaluation` is only meaningful when `evaluated`.
struct StoredCandidate {
  Known known;
  Evidence evidence;
  bool evaluated = false;
  std::int64_t order = 0;  // of evaluation: 1, 2, ...
  double at_s = 0;         // run time in seconds (all sittings) when it was stored
};

// A line of change that its proposer has exhausted.
struct ClosedLine {
  std::int64_t candidate = 0;
  std::int64_t after = 0;  // this many evaluations
  std::string proposer;
};

struct StoredConfirmation {
  std::int64_t best = 0;
  Evaluation evaluation;  // versus the start
  std::string stopped_by;
  double own_ms_per_evaluation = 0;
  std::vector<HeldOut> held_out = {};  // in the task's order
};

// Everything that a store holds.
struct StoredRun {
  RunHeader header;
  std::vector<StoredCandidate> candidates;   // by id: 1, 2, ...
  std::map<std::int64_t, Writing> writings;  // by candidate
  std::map<std::int64_t, ToolStep> steps;    // by candidate
  std::vector<ExchangeRequest> requests;     // in their order
  std::vector<ModelCall> calls;              // in the order in which they ended
  std::vector<ClosedLine> closed;            // in their order
  std::optional<StoredConfirmation> confirmation;
};

}  // namespace kernelpro
