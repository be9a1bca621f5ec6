// SPDX-License-Identifier: Apache-2.0
// The probes of a case on the cpu target: those of a task's (measure/judge/probes.h) that show
// something here, their inputs and the reference's results.
#pragma once

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "core/task/task.h"
#include "measure/cpu/reference.h"

namespace kernelpro {

// Where as many apply, whatever the time. All that tell most (measure/judge/probes.h) are made in
// up to five times the budget.
inline constexpr std::size_t kFewestProbes = 4;

struct CaseProbes {
  std::vector<ProbeSet> sets;  // in random order
  bool linear = false;         // the results are, in each input; known where a probe asks for it
};

// How many make_probes makes, at most.
std::size_t most_probes(const Task& task, const Case& c);

// `tensors`: of the case. `budget_s`: as CpuCaseSettings::probe_budget_s. All probes are for timed
// cases, and for all cases where none is timed; others get fewer, in less time. Fails as the
// reference does, and leaves what it has made until then.
Result<void> make_probes(const Task& task, const Case& c, const std::vector<Shaped>& tensors,
                         double budget_s, CpuReference& reference, CaseProbes* made);

}  // namespace kernelpro
