// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct Pose {
  float m[12];
};

__device__ inline Pose pose(const float* __restrict__ turn, const float* __restrict__ place,
                            int i) {
  const float a = turn[i], b = turn[N + i], c = turn[2 * N + i], d = turn[3 * N + i];
  const float s = __fdividef(2.0f, a * a + b * b + c * c + d * d + 1e-3f);
  return {{1 - s * (c * c + d * d), s * (b * c - a * d), s * (b * d + a * c), place[i],
           s * (b * c + a * d), 1 - s * (b * b + d * d), s * (c * d - a * b), place[N + i],
           s * (b * d - a * c), s * (c * d + a * b), 1 - s * (b * b + c * c), place[2 * N + i]}};
}

__global__ void __launch_bounds__(128)
    matrices(const float* __restrict__ turn, const float* __restrict__ place, Pose* y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  y[i] = pose(turn, place, i);
}
static_assert(N % 128 == 0);
KP_LAUNCH(matrices, kp::dim(N / 128), kp::dim(128), 0, arg::turn, arg::place, arg::y)
