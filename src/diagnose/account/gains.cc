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

double gain_of_warps(const KernelAccount& kernel, double now, double then) {
  const double ready = kernel.warp_issuing;
  if (!(ready > 0) || ready >= 1 || !(now > 0) || then <= now) return 1;
  const double faster = (1 - std::pow(1 - ready, then)) / (1 - std::pow(1 - ready, now));
  return speedup(kernel.us, std::max(kernel.part(PartKind::kFloor), kernel.us / faster));
}

double most_of_kernel(const Account& account, const KernelAccount& kernel, double slack,
                      double longer) {
  const double floor_us = kernel.part(PartKind::kFloor) / std::max(1.0, slack);
  const double us = std::min(account.us, kernel.us * std::max(1.0, longer));
  return speedup(account.us, account.us - std::max(0.0, us - floor_us));
}

}  // namespace kernelpro
