// SPDX-License-Identifier: Apache-2.0
// Decode-time GEMV with 4-bit weights and double-quantised scales: every 16 weights have a
// one-byte code into a 256-entry scale table. A warp produces two output rows; a lane's 32
// weights of a 1024-wide step are interleaved so that the activation reads are conflict-free.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t err_ = (call);                                                       \
    if (err_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                        \
                   cudaGetErrorString(err_));                                        \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

template <class F>
static double time_us(F&& launch, int warm = 20, int iters = 50) {
  for (int i = 0; i < warm; ++i) launch();
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) launch();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  return 1000.0 * ms / iters;
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

constexpr int kThreads = 256;
constexpr int kStep = 1024;  // weights a warp handles in one step of a row
constexpr int kRowsPerWarp = 2;

__constant__ float scale_table[256];

// Nibble j of word w, centred on 8, as float: the mantissa trick avoids an integer conversion.
__device__ __forceinline__ float nibble(uint32_t w, int j) {
  return __uint_as_float(((w >> (4 * j)) & 0xfu) | 0x4b000000u) - 8388616.0f;
}
__device__ __forceinline__ float half_sum(uint32_t w, float4 a, float4 b) {
  float s = nibble(w, 0) * a.x;
  s = fmaf(nibble(w, 1), a.y, s);
  s = fmaf(nibble(w, 2), a.z, s);
  s = fmaf(nibble(w, 3), a.w, s);
  s = fmaf(nibble(w, 4), b.x, s);
  s = fmaf(nibble(w, 5), b.y, s);
  s = fmaf(nibble(w, 6), b.z, s);
  return fmaf(nibble(w, 7), b.w, s);
}

__global__ void __launch_bounds__(kThreads)
    gemv_kernel(const uint4* __restrict__ weights, const uchar2* __restrict__ codes,
                const float4* __restrict__ x, float* __restrict__ y, int rows, int K) {
  extern __shared__ float4 xs[];
  for (int i = threadIdx.x; i < K / 4; i += kThreads) xs[i] = x[i];
  __syncthreads();
  const int lane = threadIdx.x & 31;
  const int warps = gridDim.x * (kThreads / 32);
  const int per_row = K / 32;  // uint4 (and code pairs) in a row
  for (int r = (blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5)) * kRowsPerWarp; r < rows;
       r += warps * kRowsPerWarp) {
    float acc[kRowsPerWarp] = {};
    const size_t base = static_cast<size_t>(r) * per_row + lane;
#pragma unroll 4
    for (int s = 0; s < K / kStep; ++s) {
      uint4 w[kRowsPerWarp];
      uchar2 c[kRowsPerWarp];
#pragma unroll
      for (int k = 0; k < kRowsPerWarp; ++k) {
        w[k] = __ldcs(weights + base + static_cast<size_t>(k) * per_row + s * 32);
        c[k] = codes[base + static_cast<size_t>(k) * per_row + s * 32];
      }
      const float4* xv = xs + s * (kStep / 4) + lane;
      const float4 x0 = xv[0], x1 = xv[32], x2 = xv[64], x3 = xv[96];
      const float4 x4 = xv[128], x5 = xv[160], x6 = xv[192], x7 = xv[224];
#pragma unroll
      for (int k = 0; k < kRowsPerWarp; ++k) {
        const float lo = half_sum(w[k].x, x0, x1) + half_sum(w[k].y, x2, x3);
        const float hi = half_sum(w[k].z, x4, x5) + half_sum(w[k].w, x6, x7);
        acc[k] = fmaf(lo, scale_table[c[k].x], acc[k]);
        acc[k] = fmaf(hi, scale_table[c[k].y], acc[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kRowsPerWarp; ++k) {
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) acc[k] += __shfl_xor_sync(0xffffffffu, acc[k], d);
    }
    if (lane == 0) *reinterpret_cast<float2*>(y + r) = make_float2(acc[0], acc[1]);
  }
}

__host__ __device__ inline uint32_t word_at(uint32_t i) { return mix32(i ^ 0x13579bdfu); }
__host__ __device__ inline uint8_t code_at(uint32_t i) {
  return static_cast<uint8_t>(mix32(i + 0x2468ace0u) >> 7);
}
__global__ void fill_kernel(uint32_t* w, uint8_t* c, uint32_t words, uint32_t codes) {
  const uint32_t stride = gridDim.x * blockDim.x, t = blockIdx.x * blockDim.x + threadIdx.x;
  for (uint32_t i = t; i < words; i += stride) w[i] = word_at(i);
  for (uint32_t i = t; i < codes; i += stride) c[i] = code_at(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int rows = 49152, K = 8192;
  const uint32_t words = static_cast<uint32_t>(rows) * (K / 8);
  const uint32_t codes = static_cast<uint32_t>(rows) * (K / 16);
  uint32_t* w;
  uint8_t* c;
  float *x, *y;
  CK(cudaMalloc(&w, static_cast<size_t>(words) * 4));
  CK(cudaMalloc(&c, codes));
  CK(cudaMalloc(&x, K * sizeof(float)));
  CK(cudaMalloc(&y, rows * sizeof(float)));
  fill_kernel<<<sms * 8, 256>>>(w, c, words, codes);
  std::vector<float> hx(K), table(256);
  for (int i = 0; i < K; ++i) hx[i] = static_cast<float>(static_cast<int>(mix32(i) & 255) - 128) / 256.0f;
  for (int i = 0; i < 256; ++i) table[i] = 0.01f * std::exp2(static_cast<float>(i - 128) / 48.0f);
  CK(cudaMemcpy(x, hx.data(), K * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(scale_table, table.data(), 256 * sizeof(float)));
  const int smem = K * static_cast<int>(sizeof(float));
  int per_sm = 0;
  CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, gemv_kernel, kThreads, smem));
  const double us = time_us([&] {
    gemv_kernel<<<sms * per_sm, kThreads, smem>>>(
        reinterpret_cast<const uint4*>(w), reinterpret_cast<const uchar2*>(c),
        reinterpret_cast<const float4*>(x), y, rows, K);
  });

  std::vector<float> got(rows);
  CK(cudaMemcpy(got.data(), y, rows * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : got) sum += std::fabs(v);
  for (int s = 0; s < 512; ++s) {
    const uint32_t r = s < 8 ? rows - 1 - s : mix32(s) % rows;
    double ref = 0;
    for (int k = 0; k < K; ++k) {
      const int step = k / kStep, in = k % kStep;
      const int lane = (in / 4) % 32, j = in / 128 * 4 + in % 4;
      const uint32_t vec = r * (K / 32) + step * 32 + lane;
      const int q = static_cast<int>((word_at(vec * 4 + j / 8) >> (4 * (j % 8))) & 15) - 8;
      ref += static_cast<double>(q) * table[code_at(vec * 2 + j / 16)] * hx[k];
    }
    if (!(std::fabs(got[r] - ref) < 2e-3)) {
      std::fprintf(stderr, "row %u: got %g want %g\n", r, got[r], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
