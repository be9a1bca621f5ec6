// SPDX-License-Identifier: Apache-2.0
#include "core/task/policy.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kernelpro {

namespace {

constexpr double kTypical = 10;  // times the median; covers the rms of x^2 or exp(x), x normal

double smallest_normal(DType dtype) {
  return dtype == DType::kFp16 ? 6.103515625e-5
                               : static_cast<double>(std::numeric_limits<float>::min());
}

}  // namespace

std::string_view policy_name(Policy policy) {
  return policy == Policy::kContract ? "contract" : "kernelbench";
}

std::optional<Policy> policy_from_name(std::string_view name) {
  if (name == "contract") return Policy::kContract;
  if (name == "kernelbench") return Policy::kKernelBench;
  return std::nullopt;
}

double scale_of(double rms, std::vector<double> sizes, DType dtype) {
  const double least = smallest_normal(dtype);
  std::erase_if(sizes, [&](double v) { return !(v >= least) || std::isinf(v); });
  if (sizes.empty()) return rms;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return std::min(rms, kTypical * *middle);
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
