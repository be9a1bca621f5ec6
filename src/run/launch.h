// SPDX-License-Identifier: Apache-2.0
// optimize and resume (run/run.h) at injected stations, for tests and bench/.
#pragma once

#include <string>
#include <vector>

#include "measure/station/station.h"
#include "run/result.h"
#include "run/store/settings.h"

namespace kernelpro {

// `own_ms`: see LoopParts.
Result<RunResult> optimize_with(const StationMaker& maker, const Task& task,
                                const RunSettings& settings, const Observer& observer,
                                std::vector<double>* own_ms = nullptr);
Result<RunResult> resume_with(const StationMaker& maker, const std::string& directory,
                              const RunSettings* budgets, const Observer& observer,
                              std::vector<double>* own_ms = nullptr);

Result<RunResult> measure_with(const StationMaker& maker, const std::string& directory,
                               const Observer& observer, bool confirm = true);

}  // namespace kernelpro
