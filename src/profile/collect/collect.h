// SPDX-License-Identifier: Apache-2.0
// Gathers what was observed of an evaluated candidate into Evidence: the task's theory (bytes,
// FLOPs), timing, static facts from the binary (ptxas, SASS, objdump) and the launch plan, and
// hardware counters. The machine's ceilings are put in later (core/evidence/rates.h).
#pragma once

#include "core/evaluation/evaluation.h"
#include "core/evidence/counters.h"
#include "core/evidence/evidence.h"
#include "core/machine/machine.h"
#include "core/plan/binary.h"
#include "core/task/task.h"

namespace kernelpro {

// `binary`: of the slowest timed case. Blocks while disassemblers run (results are cached beside
// the binary). Notes as missing what could not be read. For a cuda candidate, `kernels` has an
// entry for every kernel of the plan, longest first, even for a single one.
Evidence collect_evidence(const Task& task, const Case& c, const Machine& machine,
                          const Binary& binary, const Evaluation& evaluation,
                          const CallFacts& call = {});

}  // namespace kernelpro
