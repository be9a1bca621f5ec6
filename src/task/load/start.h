// SPDX-License-Identifier: Apache-2.0
// The candidate that a search begins with.
#pragma once

#include "base/error.h"
#include "core/candidate.h"
#include "core/task.h"

namespace kernelpro {

// The task's kernel for the target with the first value of each knob. For a task with a Module and
// no kernel: the module itself, as a PyTorch candidate, so that speed is counted against PyTorch;
// on the cpu target, which runs none, an empty kernel, which fails.
// Fails with kBadInput when there is neither, or when the kernel's knobs are faulty.
Result<Candidate> start_candidate(const Task& task, TargetKind target);

}  // namespace kernelpro
