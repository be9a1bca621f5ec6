// SPDX-License-Identifier: Apache-2.0
// Hardware counters of launches as evidence about kernels: the launches of one kernel taken
// together. Pure.
#pragma once

#include <map>
#include <string>

#include "core/counters.h"
#include "core/evidence.h"
#include "core/launch_plan.h"

namespace kernelpro {

// Items of one kernel within the call, at level counters.
struct KernelCounters {
  std::map<std::string, double> values;
  double time_ns = 0;  // of all its launches; 0 = not known
};

// By mangled name. Amounts add up over the launches, shares, rates and ratios are means weighted by
// time. Launches that were not profiled count as those that were, by their blocks. Impossible
// values (a launch without time, a share of 200 %) are left out and noted in `missing`.
std::map<std::string, KernelCounters> merge_counters(const CounterAnswers& answers,
                                                     const LaunchPlan& plan,
                                                     std::vector<Missing>* missing);

// Puts what was collected, in process or by a report of ncu, into the kernels' facts, which are by
// mangled name, with "kernel.share" when the time of all of them is known.
void add_counters(const CounterAnswers& answers, const LaunchPlan& plan,
                  std::map<std::string, KernelEvidence>* kernels, std::vector<Missing>* missing);

}  // namespace kernelpro
