// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// fp32 from 8-bit integers (Ozaki's scheme): each row of A and column of B gets an exponent of its
// own and becomes whole numbers of 28 bits, in four digits of base 128; the sixteen products of
// digits are exact sums of integers, and double precision puts them together.
#include "task.h"

constexpr int kWords = K / 4;  // four digits each
constexpr int kDigits = 4;

__device__ float largest_of(float value) {
  __shared__ float all[kWords];
  all[threadIdx.x] = value;
  for (int half = kWords / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] = fmaxf(all[threadIdx.x], all[threadIdx.x + half]);
  }
  __syncthreads();
  return all[0];
}
// A block is a row; element k is at from[k * step].
__device__ void slice_line(const float* from, int step, int* digits, int line, int lines,
                           int* exponents) {
  float v[4], most = 0;
  for (int r = 0; r < 4; ++r) {
    v[r] = from[(threadIdx.x * 4 + r) * step];
    most = fmaxf(most, fabsf(v[r]));
  }
  most = largest_of(most);
  int exponent = 0;
  frexpf(most, &exponent);
  unsigned words[kDigits] = {};
  for (int r = 0; r < 4; ++r) {
    int q = __double2int_rn(ldexp(static_cast<double>(v[r]), 27 - exponent));
    for (int s = 0; s < kDigits; ++s) {
      const int digit = s == kDigits - 1 ? q : ((q + 64) & 127) - 64;
      words[s] |= (static_cast<unsigned>(digit) & 255u) << (8 * r);
      q = (q - digit) >> 7;
    }
  }
  for (int s = 0; s < kDigits; ++s) {
    digits[(s * lines + line) * kWords + threadIdx.x] = static_cast<int>(words[s]);
  }
  if (threadIdx.x == 0) exponents[line] = exponent;
}
__global__ void slice_a(const float* a, int* digits, int* exponents) {
  slice_line(a + blockIdx.x * K, 1, digits, blockIdx.x, M, exponents);
}
__global__ void slice_b(const float* b, int* digits, int* exponents) {
  slice_line(b + blockIdx.x, N, digits, blockIdx.x, N, exponents);
}
__global__ void multiply(const int* da, const int* db, const int* ea, const int* eb, float* c) {
  __shared__ int as[kDigits][16][17], bs[kDigits][16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  const int i = blockIdx.y * 16, j = blockIdx.x * 16;
  int sums[2 * kDigits - 1] = {};  // by the power of 128: at most 4 * 512 * 65 * 65
  for (int k = 0; k < kWords; k += 16) {
    for (int s = 0; s < kDigits; ++s) {
      as[s][y][x] = da[(s * M + i + y) * kWords + k + x];
      bs[s][y][x] = db[(s * N + j + y) * kWords + k + x];
    }
    __syncthreads();
    for (int t = 0; t < 16; ++t) {
#pragma unroll
      for (int s = 0; s < kDigits; ++s) {
#pragma unroll
        for (int r = 0; r < kDigits; ++r) sums[s + r] = __dp4a(as[s][y][t], bs[r][x][t], sums[s + r]);
      }
    }
    __syncthreads();
  }
  double sum = 0;
  for (int p = 2 * kDigits - 2; p >= 0; --p) sum = sum * 128 + sums[p];
  c[(i + y) * N + j + x] = static_cast<float>(ldexp(sum, ea[i + y] + eb[j + x] - 54));
}
constexpr long long kHalf = 4ll * kDigits * M * kWords, kAll = kHalf + 4ll * kDigits * N * kWords;
KP_LAUNCH(slice_a, kp::dim(M), kp::dim(kWords), 0, arg::a, arg::workspace, arg::workspace + kAll)
KP_LAUNCH(slice_b, kp::dim(N), kp::dim(kWords), 0, arg::b, arg::workspace + kHalf,
          arg::workspace + (kAll + 4 * M))
KP_LAUNCH(multiply, kp::dim(N / 16, M / 16), kp::dim(16, 16), 0, arg::workspace,
          arg::workspace + kHalf, arg::workspace + kAll, arg::workspace + (kAll + 4 * M), arg::c)
