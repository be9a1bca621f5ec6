// SPDX-License-Identifier: Apache-2.0
#include "core/policy.h"

namespace kernelpro {

std::string_view policy_name(Policy policy) {
  return policy == Policy::kContract ? "contract" : "kernelbench";
}

std::optional<Policy> policy_from_name(std::string_view name) {
  if (name == "contract") return Policy::kContract;
  if (name == "kernelbench") return Policy::kKernelBench;
  return std::nullopt;
}

Rule rule_for(const Task& task, const Tensor& output, Policy policy) {
  Rule rule;
  if (policy == Policy::kContract) {
    rule.tolerance = tolerance_of(output, task.precision);
    return rule;
  }
  const bool half = task.precision == Precision::kFp16 || task.precision == Precision::kBf16;
  rule.kind = Rule::Kind::kAllclose;
  rule.absolute = rule.relative = half ? 1e-2 : 1e-4;
  return rule;
}

}  // namespace kernelpro
