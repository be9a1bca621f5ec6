// SPDX-License-Identifier: Apache-2.0
// Gathers what is known about an evaluated candidate into Evidence: the task's theory (bytes,
// FLOPs), the machine's ceilings, timing, static facts from the binary (ptxas, SASS, objdump) and
// from the launch plan, and hardware counters.
#pragma once

#include "core/binary.h"
#include "core/counters.h"
#include "core/evaluation.h"
#include "core/evidence.h"
#include "core/machine.h"
#include "core/task.h"

namespace kernelpro {

// `binary`: of the timed case that took longest. Blocks while disassemblers run (results are
// cached beside the binary). What could not be read is noted as missing. For a cuda candidate every
// kernel of the plan has an entry in `kernels`, the longest first, a single one too.
Evidence collect_evidence(const Task& task, const Case& c, const Machine& machine,
                          const Binary& binary, const Evaluation& evaluation,
                          const CallFacts& call = {});

// Puts a machine's ceilings, and the floors that follow from them, in the place of others: they
// were measured again.
void set_ceilings(const Machine& machine, Evidence* evidence);

}  // namespace kernelpro
