// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void transpose(const float* x, float* y) {
  __shared__ float tile[32][33];
  const int column = blockIdx.x * 32, row = blockIdx.y * 32;
  for (int k = threadIdx.y; k < 32; k += 8) {
    tile[k][threadIdx.x] = x[(row + k) * COLS + column + threadIdx.x];
  }
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8) {
    y[(column + k) * ROWS + row + threadIdx.x] = tile[threadIdx.x][k];
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  transpose<<<dim3(COLS / 32, ROWS / 32), dim3(32, 8), 0, stream>>>(args.x, args.y);
}
