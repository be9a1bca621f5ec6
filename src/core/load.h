// SPDX-License-Identifier: Apache-2.0
// What other work took of the machine while a candidate was timed, as the evidence keeps it
// (load.* of the metric registry), and how it is worded. Pure.
#pragma once

#include <map>
#include <string>

#include "core/evaluation.h"

namespace kernelpro {

// From this share of the processors on, a measurement counts as disturbed.
inline constexpr double kBusyShare = 0.05;

struct Load {
  double foreign_cpu = 0;      // share of the processors that others used; 0..1
  double pairs_dropped = 0;    // timed pairs that were disturbed and do not count
  double pairs_disturbed = 0;  // timed pairs that were disturbed and count
  double gpu_processes = 0;    // others that had work on the GPU
  bool busy() const { return foreign_cpu >= kBusyShare || gpu_processes > 0; }
};

// Of what a worker observed; zero where nothing was.
Load load_of(const std::map<std::string, double>& observed);
// "other processes used 63 % of this machine", "2 other processes used the GPU", or both; "" when
// not busy.
std::string load_text(const Load& load);

// The load of many candidates.
struct LoadSummary {
  int timed = 0;        // candidates
  int busy = 0;         // of them, while the machine was busy
  double mean_cpu = 0;  // share of the processors that others used, over all that were timed
  double most_cpu = 0;
  double pairs_dropped = 0, pairs_disturbed = 0;  // in all
  double gpu_processes = 0;                       // at most

  void add(const Load& load);
};
// One sentence; "" when the machine was never busy.
std::string load_text(const LoadSummary& summary);

}  // namespace kernelpro
