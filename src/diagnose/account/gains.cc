// SPDX-License-Identifier: Apache-2.0
#include "diagnose/account/gains.h"

#include <algorithm>
#include <cmath>

namespace kernelpro {

namespace {
// Nothing gets faster than this by one change.
constexpr double kMost = 1e3;

double speedup(double before_us, double after_us) {
  if (!(before_us > 0)) return 1;
  return std::max(1.0, before_us / std::max(after_us, before_us / kMost));
}
}  // namespace

double gain_eliminating(const KernelAccount& kernel, double us) {
  return speedup(kernel.us, kernel.us - std::max(0.0, us));
}

double gain_hiding(const KernelAccount& kernel, double active_us, double us) {
  return gain_eliminating(kernel, std::min(active_us, us));
}

double gain_of_warps(const KernelAccount& kernel, double now, double then) {
  const double ready = kernel.warp_issuing;
  if (!(ready > 0) || ready >= 1 || !(now > 0) || then <= now) return 1;
  const double faster = (1 - std::pow(1 - ready, then)) / (1 - std::pow(1 - ready, now));
  return speedup(kernel.us, std::max(kernel.part(PartKind::kFloor), kernel.us / faster));
}

double gain_spreading(const KernelAccount& kernel) {
  return gain_eliminating(kernel, kernel.part(PartKind::kWaves));
}

double gain_of_bytes(const KernelAccount& kernel, double left) {
  return gain_eliminating(kernel,
                          kernel.part(PartKind::kTraffic) * (1 - std::clamp(left, 0.0, 1.0)));
}

double gain_of_unit(const KernelAccount& kernel, double faster, double memory_floor_us) {
  if (!(faster > 1)) return 1;
  const double work =
      kernel.part(PartKind::kIssue) + (kernel.memory_bound ? 0 : kernel.part(PartKind::kFloor));
  return speedup(kernel.us, std::max(memory_floor_us, kernel.us - work * (1 - 1 / faster)));
}

double most_of_kernel(const Account& account, const KernelAccount& kernel, double slack,
                      double longer) {
  const double floor_us = kernel.part(PartKind::kFloor) / std::max(1.0, slack);
  const double us = std::min(account.us, kernel.us * std::max(1.0, longer));
  return speedup(account.us, account.us - std::max(0.0, us - floor_us));
}

double gain_of_call(const Account& account, const KernelAccount& kernel, double speedup_of_kernel) {
  return speedup(account.us, account.us - kernel.us * (1 - 1 / std::max(1.0, speedup_of_kernel)));
}

}  // namespace kernelpro
