// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// Vectors of four from an odd size, with a scalar tail, two per thread.
#include "task.h"

__global__ void relu(const float4* x, float4* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N / 4) {
    const float4 v = x[i];
    y[i] = {fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0)};
  } else if (i == N / 4) {
    for (int k = N / 4 * 4; k < N; ++k) {
      reinterpret_cast<float*>(y)[k] = fmaxf(reinterpret_cast<const float*>(x)[k], 0);
    }
  }
}
KP_LAUNCH(relu, kp::dim((N / 4 + 256) / 256), kp::dim(256), 0, (kp::Address<const float4>{0, 0}),
          (kp::Address<float4>{1, 0}))
