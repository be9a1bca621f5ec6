// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void transpose(const float* x, float* y) {
  const int column = blockIdx.x * 32 + threadIdx.x;
  const int row = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8) y[column * ROWS + row + k] = x[(row + k) * COLS + column];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  transpose<<<dim3(COLS / 32, ROWS / 32), dim3(32, 8), 0, stream>>>(args.x, args.y);
}
