// SPDX-License-Identifier: Apache-2.0
// Per-kernel evidence from compiled code and launches: ptxas, SASS, launch shape, occupancy.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/evidence/evidence.h"
#include "core/evidence/samples.h"
#include "core/machine/machine.h"
#include "core/plan/binary.h"
#include "core/plan/launch_plan.h"
#include "profile/sass/mix.h"
#include "profile/sass/program.h"

namespace kernelpro {

struct CodeFacts {
  std::map<std::string, KernelEvidence> kernels;  // by mangled name
  std::map<std::string, SassFunction> functions;  // their code, where it is known
  std::map<std::string, double> weights;          // estimated work of each, for sorting
};

// Covers the kernels that `plan` launches, or those of `only` (mangled; empty: all) in the cubin
// when the plan has no nodes. `samples` tell which of their loops are hot. Blocks while the
// disassembler runs. Notes in `call` what could not be read.
CodeFacts device_code(const Binary& binary, const LaunchPlan& plan, const Machine& machine,
                      Evidence* call, const std::vector<std::string>& only = {},
                      const SampleAnswers* samples = nullptr);

// How many of its blocks a multiprocessor holds, what limits them, and how many waves the grid is,
// from the kernel's launch__* facts. `static_shared` in bytes; `shared_carveout`: -1 = the driver's
// choice. Nothing where the architecture or the launch is not known.
void add_residency(const Machine& machine, std::int64_t static_shared, int shared_carveout,
                   Evidence* e);

// What a kernel's instructions tell, by themselves; `tool`: whose text it was.
void add_sass(const SassMix& mix, const std::string& tool, Evidence* e);

}  // namespace kernelpro
