// SPDX-License-Identifier: Apache-2.0
// Near-duplicate counts: for every 128-bit fingerprint the number of earlier ones within a Hamming
// distance. A warp keeps four fingerprints in registers and runs over all earlier ones, 32 at a
// time; the grid is one block per SM and every warp gets the same number of such quads.
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
static double time_us(F&& launch, int warm = 10, int iters = 50) {
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

constexpr int kThreads = 512;
constexpr int kQuad = 4;

__host__ __device__ inline uint4 fingerprint(uint32_t i) {
  const uint32_t a = mix32(4 * i), b = mix32(4 * i + 1), c = mix32(4 * i + 2);
  return make_uint4(a, b, c, mix32(4 * i + 3));
}
__host__ __device__ inline uint32_t bits(uint32_t v) {
#ifdef __CUDA_ARCH__
  return __popc(v);
#else
  return __builtin_popcount(v);
#endif
}
__host__ __device__ inline uint32_t distance(uint4 a, uint4 b) {
  return bits(a.x ^ b.x) + bits(a.y ^ b.y) + bits(a.z ^ b.z) + bits(a.w ^ b.w);
}

__global__ void __launch_bounds__(kThreads, 1)
    pairs_kernel(const uint4* __restrict__ prints, uint32_t* __restrict__ out, int quads,
                 uint32_t limit) {
  const int lane = threadIdx.x & 31;
  const int warps = gridDim.x * (kThreads / 32);
  const int me = blockIdx.x * (kThreads / 32) + (threadIdx.x >> 5);
  const int rounds = (quads + warps - 1) / warps;
  for (int r = 0; r < rounds; ++r) {
    const int q = r * warps + ((r & 1) ? warps - 1 - me : me);
    if (q >= quads) continue;
    uint4 mine[kQuad];
    uint32_t near[kQuad];
#pragma unroll
    for (int k = 0; k < kQuad; ++k) {
      mine[k] = prints[q * kQuad + k];
      near[k] = 0;
    }
#pragma unroll 2
    for (int j = lane; j < q * kQuad; j += 32) {
      const uint4 p = prints[j];
#pragma unroll
      for (int k = 0; k < kQuad; ++k) near[k] += distance(mine[k], p) <= limit;
    }
#pragma unroll
    for (int k = 0; k < kQuad; ++k) {
#pragma unroll
      for (int o = 16; o > 0; o >>= 1) near[k] += __shfl_xor_sync(0xffffffffu, near[k], o);
      if (lane == 0) {
        for (int e = 0; e < k; ++e) near[k] += distance(mine[k], mine[e]) <= limit;
        out[q * kQuad + k] = near[k];
      }
    }
  }
}

__global__ void fill_kernel(uint4* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = fingerprint(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int quads = 12672;
  const uint32_t n = quads * kQuad, limit = 46;
  uint4* prints;
  uint32_t* out;
  CK(cudaMalloc(&prints, n * sizeof(uint4)));
  CK(cudaMalloc(&out, n * sizeof(uint32_t)));
  fill_kernel<<<256, 256>>>(prints, n);
  const double us =
      time_us([&] { pairs_kernel<<<sms, kThreads>>>(prints, out, quads, limit); });

  std::vector<uint32_t> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  std::vector<uint4> host(n);
  for (uint32_t i = 0; i < n; ++i) host[i] = fingerprint(i);
  unsigned long long sum = 0;
  for (uint32_t v : got) sum += v;
  for (uint32_t s = 0; s < 2000; ++s) {
    const uint32_t i = s < 64 ? s : mix32(s) % n;
    uint32_t ref = 0;
    for (uint32_t j = 0; j < i; ++j) ref += distance(host[i], host[j]) <= limit;
    if (got[i] != ref) {
      std::fprintf(stderr, "fingerprint %u: got %u want %u\n", i, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %llu\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
