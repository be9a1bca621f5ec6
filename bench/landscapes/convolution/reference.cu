// SPDX-License-Identifier: Apache-2.0
// The definition, with sums in double precision: one thread per element.
#include "task.h"

constexpr int kThreads = 128;
constexpr int kPixels = HEIGHT * WIDTH;

__global__ void convolve(const float* x, const float* w, double* y) {
  const int pixel = blockIdx.x * kThreads + threadIdx.x;
  if (pixel >= kPixels) return;
  const int row = pixel / WIDTH, col = pixel % WIDTH;
  x += 1ll * (blockIdx.y / OUT) * IN * kPixels;
  w += 9ll * (blockIdx.y % OUT) * IN;
  double sum = 0;
  for (int c = 0; c < IN; ++c) {
    for (int tap = 0; tap < 9; ++tap) {
      const int r = row + tap / 3 - 1, s = col + tap % 3 - 1;
      if (r < 0 || r >= HEIGHT || s < 0 || s >= WIDTH) continue;
      sum += double(x[c * kPixels + r * WIDTH + s]) * w[9 * c + tap];
    }
  }
  y[1ll * blockIdx.y * kPixels + pixel] = sum;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  const dim3 grid((kPixels + kThreads - 1) / kThreads, IMAGES * OUT);
  convolve<<<grid, kThreads, 0, stream>>>(args.x, args.w, args.y);
}
