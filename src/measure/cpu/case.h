// SPDX-License-Identifier: Apache-2.0
// One case of a task on the cpu target: its buffers, many input sets and the reference's results
// for them. References and inputs that are not in use never leave this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation.h"
#include "core/mismatch.h"
#include "core/task.h"
#include "measure/cpu/buffers.h"
#include "measure/cpu/reference.h"

namespace kernelpro {

struct ProbeSet {
  DrawKind kind = DrawKind::kCentred;
  InputSet set;
};

struct CpuCase {
  const Case* c = nullptr;
  std::vector<Shaped> tensors;
  int slots = 1;               // how many sets the buffers hold at once
  CpuBuffers buffers;          // the tensors in order for each slot, then the workspace
  std::vector<InputSet> sets;  // the first of them exactly as the task draws it
  std::vector<ProbeSet> probes;
  std::vector<std::string> labels;  // of every verdict on this case
  double reference_seconds = 0;     // one computation of the reference
};

struct CpuCaseSettings {
  Policy policy = Policy::kContract;
  bool probes = true;
  double budget_s = 1.0;  // reference time for sets beyond the minimum
};

constexpr std::size_t kFewestSets = 4;   // of a timed case
constexpr std::size_t kMostSets = 129;   // of a timed case
constexpr std::size_t kCheckedSets = 3;  // of any case
constexpr std::size_t kTrials = 5;       // as in KernelBench

// Minimum memory that the case needs in all processes together.
std::int64_t case_memory_bytes(const Task& task, const Case& c);

// Draws the inputs and keeps the reference's results. A timed case gets as many sets as the
// reference can compute in its budget and a share of memory can hold. Fails with kTask as the
// reference does.
Result<CpuCase> make_cpu_case(const Task& task, const Case& c, CpuReference& reference,
                              const CpuCaseSettings& settings);

// Only the first set, drawn under `key`: for comparing reference.cpp with another reference.
Result<InputSet> make_host_set(const Task& task, const Case& c, const Binary& reference,
                               const std::string& worker, const kp::Key& key, double timeout_s);

// "output y is constant ..." for the first output that is uninformative in every case, or "".
std::string degenerate_output(const std::vector<CpuCase>& cases);

// Copies a set's inputs into a slot.
void load_inputs(const CpuCase& state, int slot, const InputSet& set);

// Erases all traces of earlier calls: `set` in every slot, poison in every output.
void clear_slots(const CpuCase& state, const InputSet& set, std::uint64_t round);

// Poisons the outputs of slots [first, first + count) and the workspace. `poisons`: one per tensor,
// for describe_mismatch; the same for all these slots.
void poison_outputs(const CpuCase& state, int first, int count, std::uint64_t round,
                    std::vector<Poison>* poisons);

// Whether the kernel wrote outside a tensor, in any slot.
std::optional<Outcome> judge_memory(const CpuCase& state);
// The fault in a slot's outputs, or nullopt. Raises `max_error` to the largest error over tolerance
// seen.
std::optional<Outcome> judge_outputs(const CpuCase& state, int slot, const InputSet& set,
                                     const std::vector<Poison>& poisons, double* max_error);

}  // namespace kernelpro
