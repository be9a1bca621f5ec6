// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// 64 blocks share a row; a second kernel adds their parts in a fixed order.
constexpr int kParts = 64, kPart = COLS / 4 / kParts;
static_assert(kPart * kParts * 4 == COLS);

__global__ void __launch_bounds__(256) parts(const float4* x, float* sums) {
  __shared__ float part[8];
  const float4* mine = x + 1ll * blockIdx.y * (COLS / 4) + blockIdx.x * kPart;
  float s = 0;
#pragma unroll 8
  for (int j = threadIdx.x; j < kPart; j += 256) {
    const float4 v = mine[j];
    s += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int k = 1; k < 8; ++k) s += part[k];
  sums[blockIdx.y * kParts + blockIdx.x] = s;
}

__global__ void add(const float* sums, float* y) {
  float s = sums[blockIdx.x * kParts + threadIdx.x] + sums[blockIdx.x * kParts + 32 + threadIdx.x];
  for (int m = 16; m > 0; m /= 2) s += __shfl_xor_sync(0xffffffffu, s, m);
  if (threadIdx.x == 0) y[blockIdx.x] = s / COLS;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* sums = static_cast<float*>(args.workspace);
  parts<<<dim3(kParts, ROWS), 256, 0, stream>>>(reinterpret_cast<const float4*>(args.x), sums);
  add<<<ROWS, 32, 0, stream>>>(sums, args.y);
}
