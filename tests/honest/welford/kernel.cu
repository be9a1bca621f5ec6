// SPDX-License-Identifier: Apache-2.0
// task: layernorm
// expect: correct
// Mean and squares in one pass by Welford's method, parts merged as Chan does.
#include "task.h"

struct Moments {
  float count, mean, squares;
};
__device__ Moments merged(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0) return a;
  const float delta = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

__global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y) {
  __shared__ Moments all[256];
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  Moments mine{0, 0, 0};
  for (int i = threadIdx.x; i < COLS; i += 256) {
    mine.count += 1;
    const float delta = x[i] - mine.mean;
    mine.mean += delta / mine.count;
    mine.squares += delta * (x[i] - mine.mean);
  }
  all[threadIdx.x] = mine;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] = merged(all[threadIdx.x], all[threadIdx.x + half]);
  }
  __syncthreads();
  const float mean = all[0].mean, scale = rsqrtf(all[0].squares / COLS + 1e-5f);
  for (int i = threadIdx.x; i < COLS; i += 256) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}
KP_LAUNCH(layernorm, kp::dim(ROWS), kp::dim(256), 0, arg::x, arg::gamma, arg::beta, arg::y)
