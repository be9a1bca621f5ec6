// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Several kernels with memsets of one and two dimensions between them: sums that are begun at zero
// and added to by atomics, tile by tile of K, in the workspace and in the result.
#include "task.h"

constexpr int kHalf = K / 2;

__global__ void add(const float* a, const float* b, float* c, int first, int end) {
  const int i = blockIdx.y, j = blockIdx.x * 128 + threadIdx.x;
  float sum = 0;
  for (int k = first; k < end; ++k) sum += a[i * K + k] * b[k * N + j];
  atomicAdd(&c[i * N + j], sum);
}
__global__ void join(const float* w, float* c) {
  const int at = blockIdx.x * 256 + threadIdx.x;
  c[at] += w[at];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  auto* w = static_cast<float*>(args.workspace);
  cudaMemsetAsync(args.c, 0, sizeof(float) * M * N, stream);
  add<<<dim3(N / 128, M), 128, 0, stream>>>(args.a, args.b, args.c, 0, kHalf);
  cudaMemset2DAsync(w, N * sizeof(float), 0, N * sizeof(float), M / 2, stream);
  cudaMemset2DAsync(w + M / 2 * N, N * sizeof(float), 0, N * sizeof(float) / 2, M - M / 2, stream);
  cudaMemset2DAsync(w + M / 2 * N + N / 2, N * sizeof(float), 0, N * sizeof(float) / 2, M - M / 2,
                    stream);
  add<<<dim3(N / 128, M), 128, 0, stream>>>(args.a, args.b, w, kHalf, K);
  join<<<M * N / 256, 256, 0, stream>>>(w, args.c);
}
