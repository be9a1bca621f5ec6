// SPDX-License-Identifier: Apache-2.0
// Starting candidates from earlier work.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/task/task.h"

namespace kernelpro {

// Candidates from runs and task folders (`from`): of a run its confirmed winner (else its fastest
// candidate), of a task folder its kernel. Each names its origin. Fails with kBadInput when an
// entry is neither, or was made for other tensors or another target; kStore when a run cannot be
// read.
Result<std::vector<Candidate>> seeds(const std::vector<std::string>& from, const Task& task,
                                     TargetKind target);

}  // namespace kernelpro
