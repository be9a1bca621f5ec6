// SPDX-License-Identifier: Apache-2.0
// Pieces of the worker protocol that both sides of the cuda target's channels share. Messages are
// JSON objects, one per frame (base/channel.h), with a member "do"; answers have "ok", or "error"
// (a text) and, where a rule was broken, "rule". Descriptors of physical memory travel with frames.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/inputs.h"
#include "core/launch_plan.h"
#include "core/task.h"

namespace kernelpro {

std::string layout_to_json(const AddressLayout& layout);
std::optional<AddressLayout> layout_from_json(const std::string& json);

// A tensor as the judge needs it: sizes, how it is drawn, how it is compared.
struct JudgeTensor {
  bool output = false;
  DType dtype = DType::kFp32;
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
  kp::DrawSpec draw{};   // inputs
  double tolerance = 0;  // outputs
  // Bytes of the reference's result: 8 per element for floating types.
  std::uint64_t expected_bytes() const;
};

std::vector<JudgeTensor> judge_tensors(const Task& task, const Case& c);
std::string judge_tensors_to_json(const std::vector<JudgeTensor>& tensors);
std::optional<std::vector<JudgeTensor>> judge_tensors_from_json(const std::string& json);

}  // namespace kernelpro
