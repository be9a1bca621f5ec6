// SPDX-License-Identifier: Apache-2.0
// task: conv3
// expect: correct precise-by-norm | correct
// Winograd's F(4 x 4, 3 x 3) in fp32: its errors are those of fp32 by their norm, while small
// elements beside large ones err by more.
#include "task.h"

constexpr int kOut = 4, kIn = 6;
__device__ const float kInput[kIn * kIn] = {4, 0, -5, 0,  1, 0, 0, -4, -4, 1,  1, 0,
                                            0, 4, -4, -1, 1, 0, 0, -2, -1, 2,  1, 0,
                                            0, 2, -1, -2, 1, 0, 0, 4,  0,  -5, 0, 1};
__device__ const float kWeights[kIn * 3] = {
    1 / 4.f,  0,        0,       -1 / 6.f, -1 / 6.f,  -1 / 6.f, -1 / 6.f, 1 / 6.f, -1 / 6.f,
    1 / 24.f, 1 / 12.f, 1 / 6.f, 1 / 24.f, -1 / 12.f, 1 / 6.f,  0,        0,       1};
__device__ const float kOutput[kOut * kIn] = {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0,
                                              0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1};

// y = m x m^T with an R x S matrix m.
template <int R, int S>
__device__ void both_sides(const float (&m)[R * S], const float* x, float* y) {
  float half[R * S];
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < S; ++j) {
      half[i * S + j] = 0;
      for (int k = 0; k < S; ++k) half[i * S + j] += m[i * S + k] * x[k * S + j];
    }
  }
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < R; ++j) {
      y[i * R + j] = 0;
      for (int k = 0; k < S; ++k) y[i * R + j] += half[i * S + k] * m[j * S + k];
    }
  }
}

constexpr int P = H - 2, Q = W - 2, kDown = P / kOut, kAlong = Q / kOut;

__global__ void convolve(const float* x, const float* w, float* y) {
  const int o = blockIdx.x * 64 + threadIdx.x;
  if (o >= N * K * kDown * kAlong) return;
  const int q = o % kAlong * kOut, p = o / kAlong % kDown * kOut;
  const int k = o / (kAlong * kDown) % K, n = o / (kAlong * kDown * K);
  float sums[kIn * kIn] = {};
  for (int c = 0; c < C; ++c) {
    float tile[kIn * kIn], v[kIn * kIn], u[kIn * kIn];
    for (int f = 0; f < kIn * kIn; ++f) {
      tile[f] = x[((n * C + c) * H + p + f / kIn) * W + q + f % kIn];
    }
    both_sides<kIn, kIn>(kInput, tile, v);
    both_sides<kIn, 3>(kWeights, w + (k * C + c) * 9, u);
    for (int f = 0; f < kIn * kIn; ++f) sums[f] += u[f] * v[f];
  }
  float out[kOut * kOut];
  both_sides<kOut, kIn>(kOutput, sums, out);
  for (int f = 0; f < kOut * kOut; ++f) {
    y[((n * K + k) * P + p + f / kOut) * Q + q + f % kOut] = out[f];
  }
}
KP_LAUNCH(convolve, kp::dim((N * K * kDown * kAlong + 63) / 64), kp::dim(64), 0, arg::x, arg::w,
          arg::y)
