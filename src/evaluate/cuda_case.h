// SPDX-License-Identifier: Apache-2.0
// The judge's side of one case of the cuda target, as the supervisor drives it: buffers, input
// sets, references, comparisons. The judge is a process of its own (worker/cuda/judge.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/binary.h"
#include "core/evaluation.h"
#include "core/protocol.h"
#include "evaluate/cuda_link.h"

namespace kernelpro {

inline constexpr int kCudaSets = 2;

struct CudaCase {
  const Case* c = nullptr;
  std::vector<Shaped> tensors;
  std::vector<JudgeTensor> judged;
  AddressLayout layout;
  AddressLayout reference_layout;
  std::vector<std::vector<Fd>> memory;  // by set, by slot: what workers map
  std::uint64_t seed = 0;               // set s is drawn from mix64(seed + s)
};

// Runs `entry` of a host-form binary once under capture, in a process of its own.
// An Outcome is the candidate's fault, an Error the machine's.
Result<std::variant<LaunchPlan, Outcome>> capture_plan(const Binary& binary,
                                                       const std::string& entry,
                                                       const AddressLayout& layout,
                                                       double timeout_s);

// Opens the case at the judge: memory, layouts, descriptors.
Result<CudaCase> open_case(CudaLink& judge, const Task& task, const Case& c);

// Draws the inputs of every set and runs the reference on them. Fails with kTask on a reference
// that crashes, disagrees with itself, or whose output does not depend on the inputs.
Result<void> run_references(CudaLink& judge, CudaCase& state, const Binary& reference,
                            std::uint64_t seed, double timeout_s);

// Draws a set's inputs (again): the same seed gives the same bits.
Result<void> draw_set(CudaLink& judge, const CudaCase& state, int set);

// Varied poison over outputs, workspace and the slack around every tensor.
Result<void> poison(CudaLink& judge, const CudaCase& state, int set, std::uint64_t key);

// What is wrong with a set's outputs, or nullopt. With `intrusions`, also whether inputs or memory
// around tensors changed. Raises `max_error` to the largest error over tolerance.
Result<std::optional<Outcome>> judge_set(CudaLink& judge, const CudaCase& state, int set,
                                         bool intrusions, double* max_error);

// Raw bytes of a tensor, or of its expected result, through a file.
Result<std::string> fetch_tensor(CudaLink& judge, const CudaCase& state, int set, int tensor,
                                 bool expected);

}  // namespace kernelpro
