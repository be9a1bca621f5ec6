// SPDX-License-Identifier: Apache-2.0
// The candidate that a search starts from.
#pragma once

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/task/task.h"

namespace kernelpro {

// The task's kernel for the target with the first value of each knob. A task with a Module and no
// kernel starts from the module itself as a PyTorch candidate, so that speedup is relative to
// PyTorch; the cpu target cannot run those and gets an empty kernel, which fails. Fails with
// kBadInput if there is neither, or if the kernel's knobs are invalid.
Result<Candidate> start_candidate(const Task& task, TargetKind target);

}  // namespace kernelpro
