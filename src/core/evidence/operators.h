// SPDX-License-Identifier: Apache-2.0
// The operators of a PyTorch module's call that launch something, as the capture saw them
// (python/kernelpro_torch/operators.py): what they are, which steps of the launch plan are theirs,
// and the least that they need. Names come from a process that ran the candidate: show them through
// base/text.h alone. Plain values; JSON is safe to read from any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

enum class OperatorKind : std::uint8_t { kPointwise, kReduction, kProduct, kCopy, kOther };
std::string_view operator_kind_name(OperatorKind kind);  // "pointwise"
std::optional<OperatorKind> operator_kind_from_name(std::string_view name);

struct OperatorCall {
  std::string name;   // "addmm"
  std::string where;  // the module that called it: "fc1 (Linear)"; "": the outermost, or unknown
  OperatorKind kind = OperatorKind::kOther;
  int first = 0;  // of the plan's nodes
  int nodes = 0;
  double read_bytes = 0;  // of its tensors, each once
  double written_bytes = 0;
  double flops = 0;  // of products and convolutions
  // The operators, by index, whose results it reads, and how much of them.
  struct Input {
    int from = 0;
    double bytes = 0;
  };
  std::vector<Input> from;
  double us = 0;  // of its kernels and copies; 0: not measured
};

// "`addmm` (fc1)", on one line.
std::string operator_words(const std::string& name, const std::string& where);

}  // namespace kernelpro
