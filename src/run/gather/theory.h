// SPDX-License-Identifier: Apache-2.0
// Completes a report's evidence.
#pragma once

#include "profile/import/device.h"
#include "run/gather/completion.h"
#include "run/gather/gathered.h"

namespace kernelpro {

// Adds task.*, from the task or the figures given by hand; nothing when there is neither.
Result<void> add_theory(const Theory& theory, Gathered* gathered);
// Adds evidence from the machine code in `theory.code`, matched to kernels by name; without one,
// from `found`: files that may have it, for each kernel the first that does. Fails only where
// `theory.code` cannot be what was profiled; otherwise notes why there is no machine code.
// With the code, samples of a kernel become places; a kernel without samples gets estimated ones,
// weighed by its counters. `sources`: folders in which the code's source may lie.
Result<void> add_code(const Theory& theory, const std::vector<std::string>& found,
                      Gathered* gathered, const std::vector<std::string>& sources = {});
// Adds evidence from instructions that a report holds itself (profile/import/ncu_source.h), for
// kernels that have none yet, places included.
void add_instructions(const std::string& sass, Gathered* gathered);
// Adds ceiling.* and machine.* for the GPU that `theory.device` names, else the report's own: as
// measured here, else nominal. Sets `ceilings`. Call it last.
void add_machine(const Theory& theory, const DeviceFacts& facts, Gathered* gathered);

// The case to look at. Fails with kBadInput when there is none with that name.
Result<const Case*> case_of(const Task& task, TargetKind target, const std::string& name);

}  // namespace kernelpro
