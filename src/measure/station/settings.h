// SPDX-License-Identifier: Apache-2.0
// Settings for building, judging, timing and profiling at a station: a plain value with its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluation/objective.h"
#include "core/evidence/counters.h"
#include "core/task/policy.h"
#include "core/task/task.h"

namespace kernelpro {

struct StationSettings {
  TargetKind target = TargetKind::kCpu;
  double timeout_s = 30;  // for one call of a candidate
  Objective objective;    // energy: cuda, native candidates
  Policy policy = Policy::kContract;
  bool probes = true;             // other values of the same shapes
  int probes_each = 0;            // how many kinds of them, at random; 0: all
  bool redraw = false;            // cuda: new inputs for each evaluation
  bool timing = true;             // false: verdicts only
  std::string gpu;                // cuda: UUID or index; "" the first
  std::vector<std::string> gpus;  // cuda: several that measure in parallel, `gpu` first
  // Where else to measure, by address (measure/remote/stations.h); none: on this machine.
  std::vector<std::string> stations;
  std::string python;                     // interpreter of references and baselines; "" the usual
  bool candidates = true;                 // false: none come, only orders for baselines
  std::vector<std::string> include_dirs;  // cuda: where candidates may include from
  // cuda: hardware counters of each new best candidate, or of each that is judged alone.
  CounterSet counters = CounterSet::kOff;
  // cuda: every correct candidate is timed in full and profiled, not only those that may lead.
  bool profile_each = false;
  int jobs = 0;           // compilers at a time; 0: one per core
  int modules_ahead = 0;  // cuda: PyTorch candidates to come, so that Python can start now
  int evaluations = 0;    // to come; 0: unknown. After the last, no worker is prepared
  int standby = 1;        // cuda: worker processes kept ready; brief calls are timed in all
};

std::string station_settings_to_json(const StationSettings& settings);
// Missing fields keep their defaults; nullopt when the text is damaged.
std::optional<StationSettings> station_settings_from_json(const std::string& json);

}  // namespace kernelpro
