// SPDX-License-Identifier: Apache-2.0
#include "task.h"

constexpr int kThreads = 1024, kMine = 4096 / kThreads;

// The largest of all threads' keys; every thread gets it.
__device__ inline unsigned block_max(unsigned key, int turn) {
  __shared__ unsigned keys[kThreads];
  __syncthreads();
  keys[threadIdx.x] = key;
  __syncthreads();
#pragma unroll 1
  for (int h = kThreads / 2; h > 0; h /= 2) {
    if (threadIdx.x < h) keys[threadIdx.x] = max(keys[threadIdx.x], keys[threadIdx.x + h]);
    __syncthreads();
  }
  return keys[0];
}

// A key is a squared distance (20 bits) and 4095 less the point's number.
__global__ void __launch_bounds__(kThreads)
    pick(const int* __restrict__ point, int* __restrict__ y) {
  __shared__ short where[3][4096];
  int px[kMine], py[kMine], pz[kMine], far[kMine];
  point += blockIdx.x * 12288;
#pragma unroll
  for (int h = 0; h < kMine; ++h) {
    const int j = h * kThreads + threadIdx.x;
    where[0][j] = px[h] = point[j];
    where[1][j] = py[h] = point[4096 + j];
    where[2][j] = pz[h] = point[8192 + j];
    far[h] = (1 << 20) - 1;
  }
  __syncthreads();
  int last = 0;
#pragma unroll 1
  for (int k = 0; k < PICKS; ++k) {
    if (threadIdx.x == 0) y[blockIdx.x * PICKS + k] = last;
    const int lx = where[0][last], ly = where[1][last], lz = where[2][last];
    unsigned key = 0;
#pragma unroll
    for (int h = 0; h < kMine; ++h) {
      const int u = px[h] - lx, v = py[h] - ly, w = pz[h] - lz;
      far[h] = min(far[h], u * u + v * v + w * w);
      key = max(key, far[h] * 4096u + (4095 - h * kThreads - threadIdx.x));
    }
    last = 4095 - block_max(key, k) % 4096;
  }
}
KP_LAUNCH(pick, kp::dim(CLOUDS), kp::dim(kThreads), 0, arg::point, arg::y)
