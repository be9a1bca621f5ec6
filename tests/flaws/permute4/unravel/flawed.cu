// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct Shape {
  long long size[4];
  long long stride[4];
};

__global__ void permute(const float* x, float* y, long long count, Shape shape) {
  const long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  long long rest = i, from = 0;
  for (int k = 3; k >= 0; --k) {
    from += rest % shape.size[k] * shape.stride[k];
    rest /= shape.size[k];
  }
  y[i] = x[from];
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const long long count = 1ll * A * B * C * D;
  const Shape shape = {{A, C, B, D}, {1ll * B * C * D, D, 1ll * C * D, 1}};
  permute<<<(count + 255) / 256, 256, 0, stream>>>(args.x, args.y, count, shape);
}
