// SPDX-License-Identifier: Apache-2.0
// Evidence from whatever a person has: a run, a kernel with its task, machine code, a profiler's
// report, a trace, a program, evidence that was saved. All block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evidence.h"
#include "core/machine.h"
#include "core/task.h"
#include "run/gather/completion.h"
#include "run/gather/gathered.h"
#include "run/run.h"
#include "task/open/open_task.h"

namespace kernelpro {

// `id` 0: the best candidate, or the start of a run without one. Reads the store only.
Result<Gathered> gather_run(const std::string& directory, std::int64_t id);
// Evaluates it with its task on this machine; without a GPU, static evidence from compiling it for
// `theory.device` (or sm_90a). Fails with kBadInput for a kernel that does not compile or is not
// correct: then there is nothing to make faster.
Result<Gathered> gather_kernel(const std::string& file, const Theory& theory,
                               const RunSettings& settings);
Result<Gathered> gather_binary(const std::string& file, const Theory& theory);
// A .ncu-rep or ncu's CSV, an .nsys-rep, its SQLite export or CSV, evidence or a verdict as JSON:
// by what is in the file, not by its name.
Result<Gathered> gather_file(const std::string& file, const Theory& theory);
// Runs a program under the tracer, and again under ncu for the counters of its longest kernels when
// `counters` asks for them and ncu is here.
Result<Gathered> gather_program(const std::vector<std::string>& argv, const Theory& theory,
                                double timeout_s, bool counters);

// The machine that `kernelpro` measured here under this name, latest first; nullopt: none.
std::optional<Machine> measured_machine(const std::string& name);

}  // namespace kernelpro
