// SPDX-License-Identifier: Apache-2.0
#include "diagnose/roofline/roofline.h"

#include <algorithm>

#include "core/evaluation/load.h"
#include "core/evidence/rates.h"

namespace kernelpro {

namespace {

constexpr double kMostForeign = 0.95;  // more leaves nothing to measure

Bound theory_of(double memory_us, double compute_us) {
  if (memory_us <= 0 && compute_us <= 0) return Bound::kUnknown;
  if (memory_us > kMixedRatio * compute_us) return Bound::kMemory;
  if (compute_us > kMixedRatio * memory_us) return Bound::kCompute;
  return Bound::kMixed;
}

bool launches_dominate(const Evidence& evidence, double time_us) {
  const auto kernels = evidence.get("plan.kernels");
  return kernels && *kernels >= 3 && time_us / *kernels < kShortKernelUs;
}

}  // namespace

double Roofline::beats() const {
  return time_us > 0 ? std::max(memory_floor_us, compute_floor_us) / time_us : 0;
}

double Roofline::most() const {
  const double least_us = std::max(memory_floor_us / kCopySlack, less_work ? 0 : compute_floor_us);
  return fraction > 0 && least_us > 0 ? std::max(1.0, time_us / least_us) : 1;
}

Roofline roofline(const Evidence& evidence) {
  Roofline result;
  const Floors least = floors(evidence);
  result.memory_floor_us = least.memory_us;
  result.compute_floor_us = least.compute_us;
  result.time_us = evidence.get("timing.median").value_or(0);
  const double foreign = evidence.get("load.foreign_cpu").value_or(0);
  if (foreign >= kBusyShare) result.foreign = std::min(foreign, kMostForeign);
  result.less_work = result.time_us > 0 && result.memory_floor_us > 0 &&
                     result.time_us < kLessWork * result.compute_floor_us &&
                     evidence.get("ceiling.disturbed").value_or(0) == 0;
  const double compute_us = result.less_work ? 0 : result.compute_floor_us;
  result.floor_us = std::max(result.memory_floor_us, compute_us);
  result.theory = theory_of(result.memory_floor_us, compute_us);
  result.bound = result.theory;
  if (result.time_us <= 0 || result.floor_us <= 0) return result;
  result.fraction = result.floor_us / result.time_us;
  result.quiet_fraction = result.fraction / (1 - result.foreign);
  if (launches_dominate(evidence, result.time_us)) {
    result.bound = Bound::kLaunch;
  } else if (result.quiet_fraction < kLatencyFraction) {
    result.bound = Bound::kLatency;
  }
  return result;
}

}  // namespace kernelpro
