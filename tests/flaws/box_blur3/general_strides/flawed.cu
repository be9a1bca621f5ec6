// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct View {
  long long size[3], stride[3];
};

__device__ inline long long clamp_to(long long v, long long n) { return v < 0 ? 0 : v < n ? v : n - 1; }

__global__ void blur(const float* x, float* y, View view, int radius) {
  const int w = blockIdx.x * blockDim.x + threadIdx.x;
  const int h = blockIdx.y, d = blockIdx.z;
  float sum = 0;
  int count = 0;
  for (int a = -radius; a <= radius; ++a) {
    for (int b = -radius; b <= radius; ++b) {
      for (int c = -radius; c <= radius; ++c) {
        const long long at = clamp_to(d + a, view.size[0]) * view.stride[0] +
                             clamp_to(h + b, view.size[1]) * view.stride[1] +
                             clamp_to(w + c, view.size[2]) * view.stride[2];
        sum += x[at];
        ++count;
      }
    }
  }
  y[d * view.stride[0] + h * view.stride[1] + w * view.stride[2]] = sum / count;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const View view = {{D, H, W}, {1ll * H * W, W, 1}};
  blur<<<dim3(W / 64, H, D), 64, 0, stream>>>(args.x, args.y, view, 1);
}
