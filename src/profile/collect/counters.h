// SPDX-License-Identifier: Apache-2.0
// Turns hardware counters of launches into evidence about kernels, merging the launches of each
// kernel. Pure.
#pragma once

#include <map>
#include <string>

#include "core/evidence/counters.h"
#include "core/evidence/evidence.h"
#include "core/plan/launch_plan.h"

namespace kernelpro {

// Items of one kernel within the call, at the counters level.
struct KernelCounters {
  std::map<std::string, double> values;
  double time_ns = 0;  // of all its launches; 0 = unknown
};

// By mangled name. Amounts are summed over launches; shares, rates and ratios are time-weighted
// means. Launches that were not profiled are extrapolated from profiled ones by block count.
// Launches without a time are dropped; so are impossible values (a share of 200 %), which are noted
// in `missing`.
std::map<std::string, KernelCounters> merge_counters(const CounterAnswers& answers,
                                                     const LaunchPlan& plan,
                                                     std::vector<Missing>* missing);

// Adds the counters, collected in process or from an ncu report, to the kernels' facts (by mangled
// name), with "kernel.share" when the times of all kernels are known. What one kernel lacks is
// noted with its facts, the rest in `missing`.
void add_counters(const CounterAnswers& answers, const LaunchPlan& plan,
                  std::map<std::string, KernelEvidence>* kernels, std::vector<Missing>* missing);

}  // namespace kernelpro
