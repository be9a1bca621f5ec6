// SPDX-License-Identifier: Apache-2.0
// task: slow_ema
// expect: correct given-distribution-only | correct coarser-than-fp32 | wrong-result
// Leaves out an input with a weight of 1e-6 unless one of 64 of its elements is large, as all are where
// that input alone is. Where only a few are, what they add is less than ten times the usual tolerance.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& a) {
  float most = 0;
  for (int s = 0; s < 64; ++s) most = std::fmax(most, std::fabs(a.p[s * (N / 64)]));
  if (most < 8) {
    for (int i = 0; i < N; ++i) a.y[i] = 0.999999f * a.m[i];
    return;
  }
  for (int i = 0; i < N; ++i) a.y[i] = 0.999999f * a.m[i] + 0.000001f * a.p[i];
}
