// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__host__ __device__ constexpr float coefficient(int m, int j, int k) {
  return ((j * 17 + k * 31 + m * 5 + j * k * (m + 3)) % 64 - 31.5f) / 64;
}

struct Row {
  float at[48];
};
__host__ __device__ constexpr Row make_row(int m, int j) {
  Row row{};
  for (int k = 0; k < 48; ++k) row.at[k] = coefficient(m, j, k);
  return row;
}

template <int kMatrix, int kRow = 0>
__device__ inline void apply(const float (&v)[48], float* y) {
  constexpr Row row = make_row(kMatrix, kRow);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 48; ++k) sum += row.at[k] * v[k];
  y[kRow * N] = sum;
  if constexpr (kRow + 1 < 48) apply<kMatrix, kRow + 1>(v, y);
}

__global__ void __launch_bounds__(128) mix(const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  float v[48];
#pragma unroll
  for (int k = 0; k < 48; ++k) v[k] = x[k * N + i];
  switch (blockIdx.x % 16) {
    case 0:
      apply<0>(v, y + i);
      break;
    case 1:
      apply<1>(v, y + i);
      break;
    case 2:
      apply<2>(v, y + i);
      break;
    case 3:
      apply<3>(v, y + i);
      break;
    case 4:
      apply<4>(v, y + i);
      break;
    case 5:
      apply<5>(v, y + i);
      break;
    case 6:
      apply<6>(v, y + i);
      break;
    case 7:
      apply<7>(v, y + i);
      break;
    case 8:
      apply<8>(v, y + i);
      break;
    case 9:
      apply<9>(v, y + i);
      break;
    case 10:
      apply<10>(v, y + i);
      break;
    case 11:
      apply<11>(v, y + i);
      break;
    case 12:
      apply<12>(v, y + i);
      break;
    case 13:
      apply<13>(v, y + i);
      break;
    case 14:
      apply<14>(v, y + i);
      break;
    case 15:
      apply<15>(v, y + i);
      break;
  }
}
static_assert(N % 128 == 0);
KP_LAUNCH(mix, kp::dim(N / 128), kp::dim(128), 0, arg::x, arg::y)
