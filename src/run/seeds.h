// SPDX-License-Identifier: Apache-2.0
// Candidates from earlier work, for a search to begin with.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "core/candidate.h"
#include "core/task.h"

namespace kernelpro {

// What earlier work gives to begin with: of a run its confirmed winner (else its fastest
// candidate), of a task folder its kernel. `from`: runs and task folders. Each says where it came
// from. Fails with kBadInput when one is neither, or was made for other tensors or for another
// target; kStore when a run cannot be read.
Result<std::vector<Candidate>> seeds(const std::vector<std::string>& from, const Task& task,
                                     TargetKind target);

}  // namespace kernelpro
