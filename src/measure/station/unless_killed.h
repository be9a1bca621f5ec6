// SPDX-License-Identifier: Apache-2.0
// A candidate is not to blame for a process that was killed from outside.
#pragma once

#include <functional>
#include <optional>

#include "base/error.h"
#include "core/evaluation/evaluation.h"

namespace kernelpro {

inline constexpr int kMostKilled = 3;  // in a row

// Runs `evaluate`, which starts fresh processes, again while its process is killed from outside
// (the out-of-memory killer, a batch system, a person), kMostKilled times in all. After that it is
// an error of the machine (kEnvironment), so that a resume retries the candidate; but it is the
// candidate's crash where it may have sent the signal to itself (Python, host code). nullopt: the
// run is asked to stop or cancelled, and so may have been the process.
Result<std::optional<Evaluation>> unless_killed(
    const std::function<Result<Evaluation>()>& evaluate);

}  // namespace kernelpro
