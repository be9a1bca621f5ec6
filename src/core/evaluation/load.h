// SPDX-License-Identifier: Apache-2.0
// Load from other work on the machine while a candidate was timed, as kept in the evidence (load.*
// of the metric registry), and its wording. Pure.
#pragma once

#include <map>
#include <string>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

// A measurement counts as disturbed from this fraction of the processors on.
inline constexpr double kBusyShare = 0.05;

struct Load {
  double foreign_cpu = 0;      // fraction of the processors used by others; 0..1
  double pairs_dropped = 0;    // timed pairs dropped because they were disturbed
  double pairs_disturbed = 0;  // timed pairs that count although disturbed
  double gpu_processes = 0;    // other processes with work on the GPU
  bool busy() const { return foreign_cpu >= kBusyShare || gpu_processes > 0; }
};

// From a worker's observations; zero for missing ones.
Load load_of(const std::map<std::string, double>& observed);
// "other processes used 63 % of this machine", "2 other processes used the GPU", or both; "" when
// not busy.
std::string load_text(const Load& load);

// The note of one timing on a busy machine: `disturbed` of `kept` measurements.
std::string busy_note(double foreign_cpu, int disturbed, int kept);

// The load over many candidates.
struct LoadSummary {
  int timed = 0;        // candidates
  int busy = 0;         // timed while the machine was busy
  double mean_cpu = 0;  // mean foreign_cpu over all timed candidates
  double most_cpu = 0;
  double pairs_dropped = 0, pairs_disturbed = 0;  // totals
  double gpu_processes = 0;                       // maximum

  void add(const Load& load);
};
// One sentence; "" when the machine was never busy.
std::string load_text(const LoadSummary& summary);

}  // namespace kernelpro
