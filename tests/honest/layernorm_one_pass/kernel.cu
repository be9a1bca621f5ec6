// SPDX-License-Identifier: Apache-2.0
// task: layernorm
// expect: correct
// Mean and variance in one pass, with a shift that keeps their difference exact.
#include "task.h"

__global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y) {
  __shared__ float sums[8], squares[8];
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  const float shift = x[0];
  float sum = 0, square = 0;
  for (int i = threadIdx.x; i < COLS; i += 256) {
    const float v = x[i] - shift;
    sum += v;
    square += v * v;
  }
  for (int step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(~0u, sum, step);
    square += __shfl_xor_sync(~0u, square, step);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
    squares[threadIdx.x / 32] = square;
  }
  __syncthreads();
  sum = square = 0;
  for (int w = 0; w < 8; ++w) {
    sum += sums[w];
    square += squares[w];
  }
  const float mean = sum / COLS;
  const float scale = rsqrtf(square / COLS - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < COLS; i += 256) {
    y[i] = (x[i] - shift - mean) * scale * gamma[i] + beta[i];
  }
}
KP_LAUNCH(layernorm, kp::dim(ROWS), kp::dim(256), 0, arg::x, arg::gamma, arg::beta, arg::y)
