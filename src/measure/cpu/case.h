// SPDX-License-Identifier: Apache-2.0
// One case of a task on the cpu target: many input sets, the reference's results for them, and the
// layout of a worker's buffers. References and inputs that are not in use never leave this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/evaluation.h"
#include "core/task/mismatch.h"
#include "core/task/task.h"
#include "measure/cpu/buffers.h"
#include "measure/cpu/reference.h"

namespace kernelpro {

struct CpuCase {
  const Case* c = nullptr;
  std::vector<Shaped> tensors;
  int slots = 2;                    // how many sets a worker's buffers hold at once
  std::int64_t workspace = 0;       // bytes
  std::vector<InputSet> sets;       // the first of them exactly as the task draws it
  std::vector<ProbeSet> probes;     // ready to run, in random order
  std::vector<std::string> labels;  // of every verdict on this case
  // For NormError (measure/judge/precision.h).
  double sum_length = 0;
  bool linear = false, accounted = true;  // linear: in each input, products too
};

struct CpuCaseSettings {
  Policy policy = Policy::kContract;
  bool probes = true;
  // Of processor time (CpuReference::fastest_s), so that other work takes no inputs away.
  double budget_s = 1.0;        // for sets beyond the minimum
  double probe_budget_s = 1.0;  // for probes beyond the fewest
};

constexpr std::size_t kFewestSets = 4;   // of a timed case
constexpr std::size_t kMostSets = 129;   // of a timed case
constexpr std::size_t kCheckedSets = 3;  // of any case
constexpr std::size_t kTrials = 5;       // as in KernelBench

// Minimum memory that the case needs in all processes together.
std::int64_t case_memory_bytes(const Task& task, const Case& c);

// Draws the inputs and keeps the reference's results. A timed case gets as many sets as the
// reference can compute in its budget and a share of memory can hold. All cases get probes, those
// that are not timed fewer, unless none is. Fails with kTask as the reference does.
Result<CpuCase> make_cpu_case(const Task& task, const Case& c, CpuReference& reference,
                              const CpuCaseSettings& settings);

// Only the first set, drawn under `key`: for comparing reference.cpp with another reference.
Result<InputSet> make_host_set(const Task& task, const Case& c, const Binary& reference,
                               const std::string& worker, const kp::Key& key, double timeout_s);

// "output y is constant ..." for the first output that is uninformative in every case, or "".
std::string degenerate_output(const std::vector<CpuCase>& cases);

// Memory for one process: the tensors in order for each of `state.slots`, then the workspace. In
// the first slot, which is never timed, tensors begin directly behind unmapped memory; in the
// others they end before it. Fails as CpuBuffers::make does.
Result<CpuBuffers> make_buffers(const CpuCase& state);
// ... for a process that runs no candidate code: one slot of a page per tensor.
Result<CpuBuffers> make_small_buffers(const CpuCase& state);

// Copies a set's inputs into a slot, and puts new contents around all its tensors.
void load_inputs(const CpuCase& state, const CpuBuffers& buffers, int slot, const InputSet& set);

// Poisons the outputs of slots [first, first + count) and the workspace, in patterns that nobody
// can predict. Returns them, one per tensor, for describe_mismatch; the same for all these slots.
std::vector<Poison> poison_outputs(const CpuCase& state, const CpuBuffers& buffers, int first,
                                   int count);

// Adds the deviations of a slot's floating outputs, where those of honest kernels are known.
void add_deviations(const CpuCase& state, const CpuBuffers& buffers, int slot, const InputSet& set,
                    DrawKind kind, std::vector<NormError>* all);

// What a slot needs before a call: both of the above, in small pieces in a secret order. What was
// written last is still in the caches, and nobody can know what that is.
std::vector<Poison> reveal(const CpuCase& state, const CpuBuffers& buffers, int slot,
                           const InputSet& set);

// Whether the kernel wrote outside a tensor, in any slot.
std::optional<Outcome> judge_memory(const CpuCase& state, const CpuBuffers& buffers);
// The fault in a slot's outputs, or nullopt. Raises `max_error` to the largest error over tolerance
// seen.
std::optional<Outcome> judge_outputs(const CpuCase& state, const CpuBuffers& buffers, int slot,
                                     const InputSet& set, const std::vector<Poison>& poisons,
                                     double* max_error);

}  // namespace kernelpro
