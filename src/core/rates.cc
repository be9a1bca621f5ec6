// SPDX-License-Identifier: Apache-2.0
#include "core/rates.h"

namespace kernelpro {

double matmul_rate(const Evidence& evidence) {
  const double tensor = evidence.get("ceiling.tensor_rate").value_or(0);
  if (tensor > 0 && evidence.get("task.half_inputs").value_or(0) > 0) return tensor;
  if (tensor > 0 && evidence.get("task.tf32").value_or(0) > 0) return kTf32Rate * tensor;
  return evidence.get("ceiling.fma_rate").value_or(0);
}

}  // namespace kernelpro
