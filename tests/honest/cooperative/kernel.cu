// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// A cooperative launch: barriers across the grid between three phases, partial results in the
// workspace.
#include <cooperative_groups.h>

#include "task.h"

constexpr int kParts = 4;  // blocks per row

__device__ float across(float value, bool largest) {
  __shared__ float all[256];
  __syncthreads();
  all[threadIdx.x] = value;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const float other = all[threadIdx.x + half];
      all[threadIdx.x] = largest ? fmaxf(all[threadIdx.x], other) : all[threadIdx.x] + other;
    }
  }
  __syncthreads();
  return all[0];
}

__global__ void softmax(const float* x, float* y, float* parts) {
  float* sums = parts + ROWS * kParts;
  const int length = (COLS + kParts - 1) / kParts;
  for (int item = blockIdx.x; item < ROWS * kParts; item += gridDim.x) {
    const int row = item / kParts, first = item % kParts * length;
    float largest = -INFINITY;
    for (int i = first + threadIdx.x; i < min(first + length, COLS); i += 256) {
      largest = fmaxf(largest, x[1ll * row * COLS + i]);
    }
    largest = across(largest, true);
    if (threadIdx.x == 0) parts[item] = largest;
  }
  cooperative_groups::this_grid().sync();
  for (int item = blockIdx.x; item < ROWS * kParts; item += gridDim.x) {
    const int row = item / kParts, first = item % kParts * length;
    float largest = -INFINITY, sum = 0;
    for (int p = 0; p < kParts; ++p) largest = fmaxf(largest, parts[row * kParts + p]);
    for (int i = first + threadIdx.x; i < min(first + length, COLS); i += 256) {
      sum += expf(x[1ll * row * COLS + i] - largest);
    }
    sum = across(sum, false);
    if (threadIdx.x == 0) sums[item] = sum;
  }
  cooperative_groups::this_grid().sync();
  for (int item = blockIdx.x; item < ROWS * kParts; item += gridDim.x) {
    const int row = item / kParts, first = item % kParts * length;
    float largest = -INFINITY, sum = 0;
    for (int p = 0; p < kParts; ++p) {
      largest = fmaxf(largest, parts[row * kParts + p]);
      sum += sums[row * kParts + p];
    }
    for (int i = first + threadIdx.x; i < min(first + length, COLS); i += 256) {
      y[1ll * row * COLS + i] = expf(x[1ll * row * COLS + i] - largest) / sum;
    }
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const float* x = args.x;
  float *y = args.y, *parts = static_cast<float*>(args.workspace);
  void* parameters[] = {&x, &y, &parts};
  cudaLaunchCooperativeKernel(softmax, dim3(256), dim3(256), parameters, 0, stream);
}
