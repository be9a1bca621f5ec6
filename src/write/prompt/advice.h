// SPDX-License-Identifier: Apache-2.0
// Advice for a writer beyond the measurement: the machine's limits for this task, and what fast
// kernels of its kind look like (prompts/craft/). Chosen by the task and
// the architecture only, so that every parent gets the same. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/machine/machine.h"
#include "core/task/task.h"
#include "write/prompt/prompts.h"

namespace kernelpro {

// What craft texts (prompts.h) are selected by. `machine`: null if not known.
CraftSubject craft_subject(const Task& task, TargetKind target, const Machine* machine);

// "machine", "advice", "compile" and "arch", filled in; empty where nothing is known or applies.
PromptFields advice_fields(const Task& task, TargetKind target, const Machine* machine,
                           const Prompts& prompts);

}  // namespace kernelpro
