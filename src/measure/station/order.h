// SPDX-License-Identifier: Apache-2.0
// What a station is told to do and what it answers: plain values with their JSON, in which sources,
// knobs and hashes stand for themselves. No path of the machine that measures is in them.
#pragma once

#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/evaluation/evaluation.h"
#include "core/evidence/evidence.h"
#include "measure/judge/energy_plan.h"

namespace kernelpro {

// How the build of a candidate ended.
struct Built {
  std::string candidate;              // its content hash
  std::string code;                   // hash of its machine code; "" = none
  std::optional<CompileError> error;  // of its source
  double compile_ms = 0;              // 0 when it came from a cache
};
// The machine's faults (no compiler, a full disk) are errors.
using Building = std::shared_future<Result<Built>>;

// Measure one candidate, or only inspect it.
struct Order {
  Candidate candidate;
  // Timed in alternation with the candidate; one with the same content counts as none.
  std::optional<Candidate> incumbent = {};
  bool confirm = false;  // in fresh processes, with more samples. REQUIRES: an incumbent
  bool variant = false;  // Subject::variant
  // After a correct verdict, if the run's objective needs energy.
  std::optional<EnergyPlan> energy = {};
  bool observe = true;  // collect evidence about a correct candidate
  // Hardware counters (StationSettings::counters) cost a tenth of a second. Collect them if the
  // candidate is faster than its incumbent with confidence, or if the incumbent's time over its own
  // exceeds this; 0: always; nullopt: never.
  std::optional<double> counters_above = 0;
  // Build it, read its machine code, and do not run it: the answer has evidence and no evaluation,
  // or a CompileError. Needs no prepared station.
  bool inspect = false;
  // How it was judged before: collect evidence with the counters and judge nothing. The answer has
  // evidence and no evaluation.
  std::optional<Evaluation> judged = {};
};

// Time PyTorch itself on the task's module, on the case that stands for the task (largest_timed).
// No candidate takes part, and nothing needs to be prepared.
struct BaselineOrder {
  bool compiled = true;    // cuda: torch.compile too, which takes minutes
  double seconds = 2;      // of timing per method, at most
  double timeout_s = 300;  // per method, including torch.compile
  bool cached = true;      // times that the station remembers will do
};

struct Measured {
  // nullopt: inspected alone, or ended from outside before there was one.
  std::optional<Evaluation> evaluation;
  // Empty unless correct and observed, or inspected. Without the machine's ceilings, which may be
  // measured again: set_ceilings (core/evidence/rates.h).
  Evidence evidence;
  std::vector<std::string> labels;  // of every verdict on this task at this station
  // Milliseconds: "compile", "wait" (for the compiler), "evaluate", "evidence".
  std::map<std::string, double> phases_ms;
};

std::string order_to_json(const Order& order);
std::optional<Order> order_from_json(const std::string& json);  // nullopt: damaged
std::string baseline_order_to_json(const BaselineOrder& order);
std::optional<BaselineOrder> baseline_order_from_json(const std::string& json);
std::string built_to_json(const Built& built);
std::optional<Built> built_from_json(const std::string& json);
std::string measured_to_json(const Measured& measured);
std::optional<Measured> measured_from_json(const std::string& json);

}  // namespace kernelpro
