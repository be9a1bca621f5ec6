// SPDX-License-Identifier: Apache-2.0
// What a report's evidence is completed with.
#pragma once

#include "profile/import/device.h"
#include "run/gather/completion.h"
#include "run/gather/gathered.h"

namespace kernelpro {

// task.*, from the task or the figures given by hand; nothing when there is neither.
Result<void> add_theory(const Theory& theory, Gathered* gathered);
// What the machine code in `theory.code` says about the kernels of the same names; nothing when
// none was given.
Result<void> add_code(const Theory& theory, Gathered* gathered);
// ceiling.* and machine.*: of the GPU that `theory.device` names or the report's own, as measured
// here, else nominal. Sets `ceilings`. Call it last.
void add_machine(const Theory& theory, const DeviceFacts& facts, Gathered* gathered);

// The case to look at. Fails with kBadInput when there is none of that name.
Result<const Case*> case_of(const Task& task, TargetKind target, const std::string& name);

}  // namespace kernelpro
