// SPDX-License-Identifier: Apache-2.0
// Expands companded 12-bit raw camera samples to linear 16-bit ones and applies the Bayer white balance.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace raw {

constexpr int kCodes = 4096;
__device__ uint16_t gCurve[kCodes];

struct Balance {
  uint32_t even[2];   // gains of an even row, 4.12 fixed point
  uint32_t odd[2];
};

__host__ __device__ inline uint32_t applyGain(uint32_t v, uint32_t gain) {
  const uint32_t r = (v * gain) >> 12;
  return r < 65535u ? r : 65535u;
}

template <int BITS, bool BALANCE>
__global__ void __launch_bounds__(256) decompand(const uint4* __restrict__ in, uint4* __restrict__ out,
                                                 int vecPerRow, int rows, Balance wb) {
  constexpr uint32_t kMask = (1u << BITS) - 1;
  __shared__ uint16_t curve[1 << BITS];
  for (int i = threadIdx.x; i < (1 << BITS); i += blockDim.x) curve[i] = gCurve[i];
  __syncthreads();
  for (int y = blockIdx.x; y < rows; y += gridDim.x) {
    const uint32_t g0 = (y & 1) ? wb.odd[0] : wb.even[0];
    const uint32_t g1 = (y & 1) ? wb.odd[1] : wb.even[1];
    const uint4* src = in + size_t(y) * vecPerRow;
    uint4* dst = out + size_t(y) * vecPerRow;
#pragma unroll 4
    for (int x = threadIdx.x; x < vecPerRow; x += 256) {
      const uint4 p = __ldcs(src + x);
      const uint32_t w[4] = {p.x, p.y, p.z, p.w};
      uint32_t r[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        uint32_t lo = curve[w[k] & kMask];
        uint32_t hi = curve[(w[k] >> 16) & kMask];
        if (BALANCE) {
          lo = applyGain(lo, g0);
          hi = applyGain(hi, g1);
        }
        r[k] = lo | (hi << 16);
      }
      __stcs(dst + x, make_uint4(r[0], r[1], r[2], r[3]));
    }
  }
}

}  // namespace raw

int main() {
  using namespace raw;
  const int width = 8192, rows = 132 * 92;
  const size_t count = size_t(width) * rows;
  std::vector<uint16_t> curve(kCodes), host(count), got(count);
  for (int i = 0; i < kCodes; ++i) curve[i] = uint16_t(std::lround(65535.0 * std::pow(i / 4095.0, 2.0)));
  uint32_t s = 777;
  for (size_t i = 0; i < count; ++i) {
    s = s * 1664525u + 1013904223u;
    const int scene = int((i / 64) * 13 % 3000);
    host[i] = uint16_t((scene + (s >> 22)) & 4095);
  }
  uint16_t *in, *out;
  CK(cudaMalloc(&in, count * 2));
  CK(cudaMalloc(&out, count * 2));
  CK(cudaMemcpy(in, host.data(), count * 2, cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(gCurve, curve.data(), kCodes * 2));
  const Balance wb = {{7000, 4096}, {4096, 6100}};

  auto step = [&] {
    decompand<12, true><<<132 * 4, 256>>>(reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out),
                                          width / 8, rows, wb);
  };
  decompand<10, false><<<132 * 4, 256>>>(reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out),
                                         width / 8, rows, wb);
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 100;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  CK(cudaMemcpy(got.data(), out, count * 2, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; i += 1013) {
    const int x = int(i % width) & 1;
    const bool odd = (i / width) & 1;
    const uint32_t want = applyGain(curve[host[i]], odd ? wb.odd[x] : wb.even[x]);
    if (got[i] != want) {
      fprintf(stderr, "mismatch at %zu: %u, not %u\n", i, got[i], want);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
