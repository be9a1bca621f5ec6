// SPDX-License-Identifier: Apache-2.0
// Evidence from any source: a run, a kernel with its task, machine code, a profiler report, a
// trace, a program, saved evidence. All functions block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evidence/evidence.h"
#include "core/machine/machine.h"
#include "core/task/task.h"
#include "run/gather/completion.h"
#include "run/gather/gathered.h"
#include "run/run.h"
#include "task/open/open_task.h"

namespace kernelpro {

// `id` 0: the winner (run/store/winner.h). Fails with kBadInput when nothing is correct. Only reads
// the store.
Result<Gathered> gather_run(const std::string& directory, std::int64_t id);
// Evaluates the kernel with its task on this machine; without a GPU, compiles it for
// `theory.device` (or sm_90a) and returns static evidence. Fails with kBadInput for a kernel that
// does not compile or is not correct: there is nothing to speed up yet.
Result<Gathered> gather_kernel(const std::string& file, const Theory& theory,
                               const RunSettings& settings);
Result<Gathered> gather_binary(const std::string& file, const Theory& theory);
// A .ncu-rep or ncu's CSV, an .nsys-rep, its SQLite export or CSV, evidence or a verdict as JSON,
// or ncu's details page as text. The content decides, not the file name. "-": standard input, for
// text.
Result<Gathered> gather_file(const std::string& file, const Theory& theory);
// The texts among these, as `file` names them: CSV, pages, evidence and verdicts.
Result<Gathered> gather_text(const std::string& text, const std::string& file,
                             const Theory& theory);
// Runs a program under the tracer, then again under ncu for the counters of its longest kernels if
// `counters` is set and ncu is available.
Result<Gathered> gather_program(const std::vector<std::string>& argv, const Theory& theory,
                                double timeout_s, bool counters);

}  // namespace kernelpro
