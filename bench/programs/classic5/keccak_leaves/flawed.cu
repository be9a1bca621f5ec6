// SPDX-License-Identifier: Apache-2.0
// Hashes the leaves of a Merkle tree with SHA3-256 and combines them into the first level of parents.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace merkle {

#define KECCAK_RC { \
  0x0000000000000001ull, 0x0000000000008082ull, 0x800000000000808aull, 0x8000000080008000ull, \
  0x000000000000808bull, 0x0000000080000001ull, 0x8000000080008081ull, 0x8000000000008009ull, \
  0x000000000000008aull, 0x0000000000000088ull, 0x0000000080008009ull, 0x000000008000000aull, \
  0x000000008000808bull, 0x800000000000008bull, 0x8000000000008089ull, 0x8000000000008003ull, \
  0x8000000000008002ull, 0x8000000000000080ull, 0x000000000000800aull, 0x800000008000000aull, \
  0x8000000080008081ull, 0x8000000000008080ull, 0x0000000080000001ull, 0x8000000080008008ull }

__constant__ uint64_t kRound[24] = KECCAK_RC;
[[maybe_unused]] static const uint64_t hRound[24] = KECCAK_RC;

constexpr int kRate = 17;   // 64-bit lanes a block

__host__ __device__ inline uint64_t rotl(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }

__host__ __device__ inline uint64_t roundConstant(int r) {
#ifdef __CUDA_ARCH__
  return kRound[r];
#else
  return hRound[r];
#endif
}

__host__ __device__ inline void permute(uint64_t (&s)[25]) {
  constexpr int kRot[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
  constexpr int kPi[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};
#pragma unroll 1
  for (int r = 0; r < 24; ++r) {
    uint64_t c[5];
#pragma unroll
    for (int x = 0; x < 5; ++x) c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
#pragma unroll
    for (int x = 0; x < 5; ++x) {
      const uint64_t d = c[(x + 4) % 5] ^ rotl(c[(x + 1) % 5], 1);
#pragma unroll
      for (int y = 0; y < 25; y += 5) s[x + y] ^= d;
    }
    uint64_t t = s[1];
#pragma unroll 4
    for (int i = 0; i < 24; ++i) {
      const int j = kPi[i];
      const uint64_t keep = s[j];
      s[j] = rotl(t, kRot[i]);
      t = keep;
    }
#pragma unroll
    for (int y = 0; y < 25; y += 5) {
      const uint64_t a0 = s[y], a1 = s[y + 1], a2 = s[y + 2], a3 = s[y + 3], a4 = s[y + 4];
      s[y] = a0 ^ (~a1 & a2);
      s[y + 1] = a1 ^ (~a2 & a3);
      s[y + 2] = a2 ^ (~a3 & a4);
      s[y + 3] = a3 ^ (~a4 & a0);
      s[y + 4] = a4 ^ (~a0 & a1);
    }
    s[0] ^= roundConstant(r);
  }
}

// Lanes of a leaf are stored lane-major: lane w of leaf i stands at lanes[w * count + i].
template <int BLOCKS>
__host__ __device__ inline void sponge(uint64_t (&s)[25], const uint64_t* lanes, size_t count, size_t i) {
#pragma unroll
  for (int w = 0; w < 25; ++w) s[w] = 0;
#pragma unroll 1
  for (int b = 0; b <= BLOCKS; ++b) {
    if (b < BLOCKS) {
#pragma unroll
      for (int w = 0; w < kRate; ++w) s[w] ^= lanes[(b * kRate + w) * count + i];
    } else {
      s[0] ^= 0x06;
      s[kRate - 1] ^= 0x8000000000000000ull;
    }
    permute(s);
  }
}

template <int BLOCKS>
__global__ void __launch_bounds__(128) leafHash(const uint64_t* __restrict__ lanes, uint64_t* __restrict__ out,
                                                int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  uint64_t s[25];
  sponge<BLOCKS>(s, lanes, count, i);
#pragma unroll
  for (int w = 0; w < 4; ++w) out[size_t(w) * count + i] = s[w];
}

__host__ __device__ inline void combine(uint64_t (&s)[25], const uint64_t* in, size_t count, size_t i) {
#pragma unroll
  for (int w = 0; w < 25; ++w) s[w] = 0;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    s[w] = in[w * count + 2 * i];
    s[4 + w] = in[w * count + 2 * i + 1];
  }
  s[8] ^= 0x06;
  s[kRate - 1] ^= 0x8000000000000000ull;
  permute(s);
}

__global__ void __launch_bounds__(128) parentHash(const uint64_t* __restrict__ in, uint64_t* __restrict__ out,
                                                  int parents) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= parents) return;
  uint64_t s[25];
  combine(s, in, size_t(parents) * 2, i);
#pragma unroll
  for (int w = 0; w < 4; ++w) out[size_t(w) * parents + i] = s[w];
}

}  // namespace merkle

int main() {
  using namespace merkle;
  constexpr int kBlocks = 3;
  const int leaves = 132 * 1280;
  std::vector<uint64_t> host(size_t(leaves) * kBlocks * kRate);
  uint64_t x = 12345;
  for (auto& v : host) { x = x * 6364136223846793005ull + 1442695040888963407ull; v = x ^ (x >> 29); }

  uint64_t *lanes, *digests, *parents;
  CK(cudaMalloc(&lanes, host.size() * 8));
  CK(cudaMalloc(&digests, size_t(leaves) * 32));
  CK(cudaMalloc(&parents, size_t(leaves) * 16));
  CK(cudaMemcpy(lanes, host.data(), host.size() * 8, cudaMemcpyHostToDevice));

  auto step = [&] {
    leafHash<kBlocks><<<leaves / 128, 128>>>(lanes, digests, leaves);
    parentHash<<<leaves / 256, 128>>>(digests, parents, leaves / 2);
  };
  leafHash<1><<<leaves / 128, 128>>>(lanes, digests, leaves);
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 50;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<uint64_t> got(size_t(leaves) * 4), top(size_t(leaves) * 2);
  CK(cudaMemcpy(got.data(), digests, got.size() * 8, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(top.data(), parents, top.size() * 8, cudaMemcpyDeviceToHost));
  for (int p = 0; p < leaves / 2; p += 997) {
    uint64_t a[25], m[25];
    sponge<kBlocks>(a, host.data(), leaves, 2 * p);
    combine(m, got.data(), leaves, p);
    for (int w = 0; w < 4; ++w)
      if (got[size_t(w) * leaves + 2 * p] != a[w] || top[size_t(w) * (leaves / 2) + p] != m[w]) {
        fprintf(stderr, "mismatch at parent %d lane %d\n", p, w);
        return 1;
      }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
