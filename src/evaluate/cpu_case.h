// SPDX-License-Identifier: Apache-2.0
// One case of a task on the cpu target: its buffers, several sets of inputs and what the reference
// makes of them. The references never leave this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation.h"
#include "core/mismatch.h"
#include "core/task.h"
#include "evaluate/cpu_buffers.h"
#include "evaluate/cpu_session.h"

namespace kernelpro {

struct InputSet {
  std::uint64_t seed = 0;
  std::vector<std::vector<char>> inputs;  // by tensor; empty for outputs
  std::vector<Expected> expected;         // by tensor; empty for inputs
};

struct CpuCase {
  const Case* c = nullptr;
  std::vector<Shaped> tensors;
  CpuBuffers buffers;            // tensors in order, then the workspace if the task has one
  std::vector<InputSet> sets;    // kChecked that are checked first, then one for timed calls only
  double reference_seconds = 0;  // one call of the reference
};

constexpr std::size_t kInputSets = 3;
constexpr std::size_t kCheckedSets = 2;

bool is_output(const Shaped& tensor);
std::int64_t output_bytes(const CpuCase& state);

// Memory that the case needs in all processes together.
std::int64_t case_memory_bytes(const Task& task, const Case& c);

// Draws the inputs, runs the reference of this case on them in a process of its own and keeps what
// it wrote. Fails with kTask when the reference crashes, hangs or disagrees with itself.
Result<CpuCase> make_cpu_case(const Task& task, const Case& c, const Binary& reference,
                              const std::string& worker, std::uint64_t seed, double timeout_s);

// "output y is constant ..." for the first output that tells nothing in any of the cases, or "".
std::string degenerate_output(const std::vector<CpuCase>& cases);

// Puts a set's inputs into the shared buffers.
void load_inputs(const CpuCase& state, const InputSet& set);
// The same values in another order (each input rotated by its own amount): inputs that nobody has
// seen, at the cost of a copy. Not for checking.
void load_rotated(const CpuCase& state, const InputSet& set, std::uint64_t by);

// Poisons outputs and workspace. `poisons`: one per tensor, for describe_mismatch.
void poison_outputs(const CpuCase& state, std::uint64_t round, std::vector<Poison>* poisons);

// What is wrong with the outputs in the shared buffers, or nullopt. Raises `max_error` to the
// largest error over tolerance that was seen.
std::optional<Outcome> judge_outputs(const CpuCase& state, const InputSet& set,
                                     const std::vector<Poison>& poisons, double* max_error);

}  // namespace kernelpro
