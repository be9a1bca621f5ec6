// SPDX-License-Identifier: Apache-2.0
// task: growth
// expect: correct given-distribution-only | wrong-result
// Puts the exponent together without looking whether it fits: below e^-87 the results are huge or
// negative instead of zero, above e^88 anything instead of infinity. Inputs that are larger on
// purpose have infinite results, on which no probe is made.
#include "task.h"

__global__ void growth(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  const float t = x[i] * 5.770780163555854f;  // 4 log2(e)
  const float whole = floorf(t), f = t - whole;
  float p = 1.3215486790144309e-6f;  // ln(2)^k / k!, k = 8 ... 0
  p = fmaf(p, f, 1.5252733804059840e-5f);
  p = fmaf(p, f, 1.5403530393381610e-4f);
  p = fmaf(p, f, 1.3333558146428443e-3f);
  p = fmaf(p, f, 9.6181291076284772e-3f);
  p = fmaf(p, f, 5.5504108664821580e-2f);
  p = fmaf(p, f, 2.4022650695910072e-1f);
  p = fmaf(p, f, 6.9314718055994531e-1f);
  p = fmaf(p, f, 1.0f);
  const unsigned exponent = static_cast<unsigned>(static_cast<int>(whole)) << 23;
  y[i] = __uint_as_float(__float_as_uint(p) + exponent);
}
KP_LAUNCH(growth, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y)
