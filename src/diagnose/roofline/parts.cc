// SPDX-License-Identifier: Apache-2.0
#include "diagnose/roofline/parts.h"

#include "core/evidence/rates.h"
#include "diagnose/roofline/model.h"

namespace kernelpro {

double products_of_parts(const Evidence& evidence, const Evidence& facts, double us) {
  const auto busy = facts.get("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed");
  const double rate = evidence.get("ceiling.tensor_rate").value_or(0);
  const double matmul = evidence.get("task.matmul_flops").value_or(0);
  if (!busy || rate <= 0 || matmul <= 0 || evidence.get("task.half_inputs").value_or(0) > 0 ||
      !uses_matrix_units(evidence)) {
    return 0;
  }
  return *busy / 100 / resource_limit(Resource::kTensor) * rate * us * 1e-6 / matmul;
}

}  // namespace kernelpro
