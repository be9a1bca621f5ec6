// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__device__ double across(double value, bool largest) {
  __shared__ double all[256];
  __syncthreads();
  all[threadIdx.x] = value;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const double other = all[threadIdx.x + half];
      all[threadIdx.x] = largest ? fmax(all[threadIdx.x], other) : all[threadIdx.x] + other;
    }
  }
  __syncthreads();
  return all[0];
}

__global__ void softmax(const float* x, double* y) {
  x += 1ll * blockIdx.x * COLS;
  y += 1ll * blockIdx.x * COLS;
  double largest = -1e300, sum = 0;
  for (int i = threadIdx.x; i < COLS; i += 256) largest = fmax(largest, double(x[i]));
  largest = across(largest, true);
  for (int i = threadIdx.x; i < COLS; i += 256) sum += exp(x[i] - largest);
  sum = across(sum, false);
  for (int i = threadIdx.x; i < COLS; i += 256) y[i] = exp(x[i] - largest) / sum;
}
extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  softmax<<<ROWS, 256, 0, stream>>>(args.x, args.y);
}
