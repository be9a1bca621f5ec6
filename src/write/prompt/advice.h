// SPDX-License-Identifier: Apache-2.0
// What a writer is told beyond the measurement: what the machine allows for this task, and what
// kernels of its kind look like when they are fast (prompts/gpu.md and the texts beside it). Chosen
// by the task and the architecture alone, so that every parent gets the same. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/machine.h"
#include "core/task.h"
#include "write/prompt/prompts.h"

namespace kernelpro {

// The names of the texts that hold for a task, the general ones first: {"gpu", "hopper",
// "products"}; none for the cpu target. Its kind is core/operator_family.h's. `machine`: null where
// it is not known.
std::vector<std::string> advice_for(const Task& task, TargetKind target, const Machine* machine);

// "machine", "advice", "compile" and "arch", filled in; empty where nothing is known or holds.
PromptFields advice_fields(const Task& task, TargetKind target, const Machine* machine,
                           const Prompts& prompts);

}  // namespace kernelpro
