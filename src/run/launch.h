// SPDX-License-Identifier: Apache-2.0
// optimize and resume (run/run.h) with an injected target, for tests and bench/.
#pragma once

#include <string>
#include <vector>

#include "measure/station/target.h"
#include "run/result.h"
#include "run/store/settings.h"

namespace kernelpro {

// `own_ms`: see LoopParts.
Result<RunResult> optimize_with(const TargetMaker& maker, const Task& task,
                                const RunSettings& settings, const Observer& observer,
                                std::vector<double>* own_ms = nullptr);
Result<RunResult> resume_with(const TargetMaker& maker, const std::string& directory,
                              const RunSettings* budgets, const Observer& observer,
                              std::vector<double>* own_ms = nullptr);

Result<RunResult> measure_with(const TargetMaker& maker, const std::string& directory,
                               const Observer& observer);

}  // namespace kernelpro
