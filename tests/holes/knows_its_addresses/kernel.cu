// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: crashed | wrong-result | rejected
// Takes no parameters: the source of the evaluator says where tensors lie. Wrong, or a fault, in
// every other program.
#include "task.h"

constexpr unsigned long long kPage = 2ull << 20, kBytes = 4ull * N;
constexpr unsigned long long kMapped = (kBytes + kPage - 1) / kPage * kPage;
constexpr unsigned long long kFirst =
    0x200000000000ull + kPage + kMapped - (kBytes + 255) / 256 * 256;
constexpr unsigned long long kStep = kMapped + kPage;

__global__ void axpy() {
  const float* x = reinterpret_cast<const float*>(kFirst);
  const float* z = reinterpret_cast<const float*>(kFirst + kStep);
  float* y = reinterpret_cast<float*>(kFirst + 2 * kStep);
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * x[i] + z[i];
}
KP_LAUNCH(axpy, kp::dim((N + 255) / 256), kp::dim(256), 0)
