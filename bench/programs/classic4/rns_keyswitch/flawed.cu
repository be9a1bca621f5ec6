// SPDX-License-Identifier: Apache-2.0
// Homomorphic encryption: key-switching inner product of RNS polynomials (digits times key, both key halves).
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                        \
  do {                                                                                  \
    cudaError_t e_ = (x);                                                               \
    if (e_ != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));   \
      std::exit(2);                                                                     \
    }                                                                                   \
  } while (0)

namespace rns {

using u32 = uint32_t;
using u64 = uint64_t;

struct Modulus {
  u32 q;      // prime below 2^30
  u64 ratio;  // floor((2^64 - 1) / q)
  __device__ u32 reduce(u64 x) const {
    return u32(x % q);
  }
};

constexpr int kThreads = 256;

template <int kDigits, bool kAccumulate>
__global__ void __launch_bounds__(kThreads)
inner_product(const uint4* __restrict__ digits, const uint4* __restrict__ key,
              const Modulus* __restrict__ moduli, uint4* __restrict__ out, int quads, int limbs) {
  const int limb = blockIdx.y;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= quads) return;
  const Modulus m = moduli[limb];
  const size_t plane = size_t(limbs) * quads;
  const size_t at = size_t(limb) * quads + i;

  uint4 acc[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) acc[h] = kAccumulate ? out[h * plane + at] : make_uint4(0, 0, 0, 0);

#pragma unroll 2
  for (int d = 0; d < kDigits; ++d) {
    const uint4 a = digits[d * plane + at];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint4 k = key[(h * kDigits + d) * plane + at];
      acc[h].x = m.reduce(u64(a.x) * k.x + acc[h].x);
      acc[h].y = m.reduce(u64(a.y) * k.y + acc[h].y);
      acc[h].z = m.reduce(u64(a.z) * k.z + acc[h].z);
      acc[h].w = m.reduce(u64(a.w) * k.w + acc[h].w);
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) out[h * plane + at] = acc[h];
}

}  // namespace rns

static bool is_prime(uint32_t n) {
  if (n % 2 == 0) return false;
  for (uint32_t d = 3; uint64_t(d) * d <= n; d += 2)
    if (n % d == 0) return false;
  return true;
}

static uint32_t rng_state = 77u;
static uint32_t next_u32() {
  rng_state ^= rng_state << 13;
  rng_state ^= rng_state >> 17;
  rng_state ^= rng_state << 5;
  return rng_state;
}

int main() {
  constexpr int kDegree = 65536, kLimbs = 48, kDigits = 8, kIters = 300;
  constexpr int kQuads = kDegree / 4;
  const size_t plane = size_t(kLimbs) * kDegree;
  std::vector<rns::Modulus> mod;
  // NTT primes: 1 modulo twice the degree
  for (uint32_t q = (1u << 30) - 2 * kDegree + 1; int(mod.size()) < kLimbs; q -= 2 * kDegree)
    if (is_prime(q)) mod.push_back({q, ~0ull / q});
  std::vector<uint32_t> a(kDigits * plane), k(2 * kDigits * plane);
  auto fill = [&](std::vector<uint32_t>& v) {
    for (size_t p = 0; p < v.size(); p += kDegree) {
      const uint32_t q = mod[(p / kDegree) % kLimbs].q;
      for (int i = 0; i < kDegree; ++i) v[p + i] = uint32_t((uint64_t(next_u32()) * q) >> 32);
    }
  };
  fill(a);
  fill(k);
  uint4 *da, *dk, *dout;
  rns::Modulus* dm;
  CHECK(cudaMalloc(&da, a.size() * 4));
  CHECK(cudaMalloc(&dk, k.size() * 4));
  CHECK(cudaMalloc(&dout, 2 * plane * 4));
  CHECK(cudaMalloc(&dm, kLimbs * sizeof(rns::Modulus)));
  CHECK(cudaMemcpy(da, a.data(), a.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dk, k.data(), k.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dm, mod.data(), kLimbs * sizeof(rns::Modulus), cudaMemcpyHostToDevice));

  const dim3 grid(kQuads / rns::kThreads, kLimbs);
  auto step = [&] {
    rns::inner_product<kDigits, false><<<grid, rns::kThreads>>>(da, dk, dm, dout, kQuads, kLimbs);
  };
  for (int i = 0; i < 4; ++i) step();
  cudaEvent_t e0, e1;
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  CHECK(cudaEventRecord(e0));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(e1));
  CHECK(cudaEventSynchronize(e1));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<uint32_t> got(2 * plane);
  CHECK(cudaMemcpy(got.data(), dout, got.size() * 4, cudaMemcpyDeviceToHost));
  for (size_t at = 0; at < plane; at += 1013) {
    const uint64_t q = mod[at / kDegree].q;
    for (int h = 0; h < 2; ++h) {
      uint64_t want = 0;
      for (int d = 0; d < kDigits; ++d)
        want = (want + uint64_t(a[d * plane + at]) * k[(h * kDigits + d) * plane + at]) % q;
      if (got[h * plane + at] != want) {
        std::fprintf(stderr, "wrong at %zu half %d: %u, expected %llu\n", at, h, got[h * plane + at],
                     (unsigned long long)want);
        return 1;
      }
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
