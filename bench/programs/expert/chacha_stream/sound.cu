// SPDX-License-Identifier: Apache-2.0
// ChaCha20 key stream XORed over a buffer, one 64-byte block per lane and step; a warp transposes
// its 32 blocks through shared memory so that loads and stores are whole lines.
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

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;

__host__ __device__ inline uint32_t rotl(uint32_t v, int n) {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(v, v, n);
#else
  return v << n | v >> (32 - n);
#endif
}
__host__ __device__ inline void quarter(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
  a += b, d = rotl(d ^ a, 16);
  c += d, b = rotl(b ^ c, 12);
  a += b, d = rotl(d ^ a, 8);
  c += d, b = rotl(b ^ c, 7);
}
struct Key {
  uint32_t k[8];
  uint32_t nonce[3];
};
__host__ __device__ inline void keystream(const Key& key, uint32_t counter, uint32_t (&x)[16]) {
  const uint32_t s[16] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u,
                          key.k[0],    key.k[1],    key.k[2],    key.k[3],
                          key.k[4],    key.k[5],    key.k[6],    key.k[7],
                          counter,     key.nonce[0], key.nonce[1], key.nonce[2]};
  for (int i = 0; i < 16; ++i) x[i] = s[i];
  for (int r = 0; r < 10; ++r) {
    quarter(x[0], x[4], x[8], x[12]);
    quarter(x[1], x[5], x[9], x[13]);
    quarter(x[2], x[6], x[10], x[14]);
    quarter(x[3], x[7], x[11], x[15]);
    quarter(x[0], x[5], x[10], x[15]);
    quarter(x[1], x[6], x[11], x[12]);
    quarter(x[2], x[7], x[8], x[13]);
    quarter(x[3], x[4], x[9], x[14]);
  }
  for (int i = 0; i < 16; ++i) x[i] += s[i];
}

__global__ void __launch_bounds__(kThreads)
    chacha_kernel(const uint4* __restrict__ in, uint4* __restrict__ out, uint32_t blocks, Key key) {
  __shared__ __align__(16) uint4 stage[kWarps][32 * 4];
  const uint32_t warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  uint4* mine = stage[warp];
  const uint32_t stride = gridDim.x * kThreads;
  for (uint32_t base = blockIdx.x * kThreads + warp * 32; base < blocks; base += stride) {
    uint32_t x[16];
    keystream(key, base + lane, x);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      mine[lane * 4 + (i ^ (lane >> 1 & 3))] =
          make_uint4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t c = i * 32 + lane;
      const uint4 k = mine[(c & ~3u) + ((c & 3) ^ (c >> 3 & 3))];
      const uint4 v = __ldcs(in + static_cast<size_t>(base) * 4 + c);
      __stcs(out + static_cast<size_t>(base) * 4 + c,
             make_uint4(v.x ^ k.x, v.y ^ k.y, v.z ^ k.z, v.w ^ k.w));
    }
    __syncwarp();
  }
}

__global__ void fill_kernel(uint32_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = mix32(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const uint32_t blocks = 132 * 8 * 128 * 32, n = blocks * 16;
  Key key;
  for (uint32_t i = 0; i < 8; ++i) key.k[i] = mix32(i + 77);
  for (uint32_t i = 0; i < 3; ++i) key.nonce[i] = mix32(i + 99);
  uint32_t *in, *out;
  CK(cudaMalloc(&in, static_cast<size_t>(n) * 4));
  CK(cudaMalloc(&out, static_cast<size_t>(n) * 4));
  fill_kernel<<<2048, 256>>>(in, n);
  const double us = time_us([&] {
    chacha_kernel<<<sms * 8, kThreads>>>(reinterpret_cast<const uint4*>(in),
                                         reinterpret_cast<uint4*>(out), blocks, key);
  });

  std::vector<uint32_t> got(n);
  CK(cudaMemcpy(got.data(), out, static_cast<size_t>(n) * 4, cudaMemcpyDeviceToHost));
  uint64_t sum = 0;
  for (uint32_t v : got) sum += v;
  for (uint32_t s = 0; s < 200000; ++s) {
    const uint32_t b = mix32(s) % blocks;
    uint32_t x[16];
    keystream(key, b, x);
    for (uint32_t i = 0; i < 16; ++i)
      if (got[b * 16 + i] != (mix32(b * 16 + i) ^ x[i])) {
        std::fprintf(stderr, "block %u word %u is wrong\n", b, i);
        return 1;
      }
  }
  std::printf("checksum: %llu\n", static_cast<unsigned long long>(sum));
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
