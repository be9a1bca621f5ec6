// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// A thread for each row; a block moves its rows through shared memory in one piece.
constexpr int kRows = 128;
static_assert(N % kRows == 0);

__global__ void softmax(const float4* x, float4* y) {
  __shared__ float4 rows[kRows * 10 / 4];
  constexpr int kVectors = kRows * 10 / 4;
  for (int k = threadIdx.x; k < kVectors; k += kRows) rows[k] = x[blockIdx.x * kVectors + k];
  __syncthreads();
  float2* mine = reinterpret_cast<float2*>(rows) + threadIdx.x * 5;
  float2 v[5];
  float m = -1e30f, s = 0;
#pragma unroll
  for (int k = 0; k < 5; ++k) v[k] = mine[k], m = fmaxf(m, fmaxf(v[k].x, v[k].y));
#pragma unroll
  for (int k = 0; k < 5; ++k) {
    v[k] = make_float2(__expf(v[k].x - m), __expf(v[k].y - m));
    s += v[k].x + v[k].y;
  }
  const float scale = __fdividef(1.0f, s);
#pragma unroll
  for (int k = 0; k < 5; ++k) mine[k] = make_float2(v[k].x * scale, v[k].y * scale);
  __syncthreads();
  for (int k = threadIdx.x; k < kVectors; k += kRows) y[blockIdx.x * kVectors + k] = rows[k];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  softmax<<<N / kRows, kRows, 0, stream>>>(reinterpret_cast<const float4*>(args.x),
                                           reinterpret_cast<float4*>(args.y));
}
