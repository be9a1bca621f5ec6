// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/rates.h"

#include "core/task/dtype.h"

namespace kernelpro {

bool has_half_inputs(const Task& task) {
  bool any = false;
  for (const Tensor& tensor : task.tensors) {
    if (tensor.role == Role::kOutput || !is_floating(tensor.dtype)) continue;
    if (tensor.dtype != DType::kFp16 && tensor.dtype != DType::kBf16) return false;
    any = true;
  }
  return any;
}

double matmul_rate(const Evidence& evidence) {
  const double tensor = evidence.get("ceiling.tensor_rate").value_or(0);
  if (tensor > 0 && evidence.get("task.half_inputs").value_or(0) > 0) return tensor;
  if (tensor > 0 && evidence.get("task.tf32").value_or(0) > 0) return kTf32Rate * tensor;
  return evidence.get("ceiling.fma_rate").value_or(0);
}

double matmul_rate(const Task& task, const Ceilings& ceilings) {
  const double tensor = ceilings.tensor_flops_per_s;
  if (tensor > 0 && has_half_inputs(task)) return tensor;
  if (tensor > 0 && task.precision == Precision::kTf32) return kTf32Rate * tensor;
  return ceilings.fma_flops_per_s;
}

}  // namespace kernelpro
