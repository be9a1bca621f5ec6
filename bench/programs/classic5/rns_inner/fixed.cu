// SPDX-License-Identifier: Apache-2.0
// Key-switching inner product of homomorphic encryption: digits times key pairs, summed modulo each RNS limb.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace rns {

struct Modulus {
  uint64_t ratio;   // floor(2^64 / q)
  uint32_t q;
  uint32_t pad;
};

struct MulMod {
  Modulus m;
  __device__ explicit MulMod(const Modulus& mod) : m(mod) {}
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const {
    const uint64_t x = uint64_t(a) * b;
    uint32_t r = uint32_t(x) - uint32_t(__umul64hi(x, m.ratio)) * m.q;
    return r >= m.q ? r - m.q : r;
  }
  __device__ uint32_t add(uint32_t a, uint32_t b) const {
    const uint32_t s = a + b;
    return s >= m.q ? s - m.q : s;
  }
};

template <class Op>
__device__ __forceinline__ void accumulate(const Op& op, uint4& acc, const uint4& a, const uint4& b) {
  acc.x = op.add(acc.x, op(a.x, b.x));
  acc.y = op.add(acc.y, op(a.y, b.y));
  acc.z = op.add(acc.z, op(a.z, b.z));
  acc.w = op.add(acc.w, op(a.w, b.w));
}

// digits: [DIGITS][limbs][n]; keys: the same shape, one array per ciphertext component.
template <class Op, int DIGITS, bool ACCUMULATE>
__global__ void __launch_bounds__(256) keyInnerProduct(
    const uint4* __restrict__ digits, const uint4* __restrict__ key0, const uint4* __restrict__ key1,
    uint4* __restrict__ out0, uint4* __restrict__ out1, const Modulus* __restrict__ mods, int nvec) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= nvec) return;
  const int limb = blockIdx.y;
  const Op op(mods[limb]);
  const size_t at = size_t(limb) * nvec + c;
  const size_t plane = size_t(gridDim.y) * nvec;
  uint4 a0 = make_uint4(0, 0, 0, 0), a1 = a0;
  if (ACCUMULATE) { a0 = out0[at]; a1 = out1[at]; }
#pragma unroll
  for (int d = 0; d < DIGITS; ++d) {
    const uint4 x = digits[d * plane + at];
    const uint4 k0 = key0[d * plane + at];
    const uint4 k1 = key1[d * plane + at];
    accumulate(op, a0, x, k0);
    accumulate(op, a1, x, k1);
  }
  out0[at] = a0;
  out1[at] = a1;
}

}  // namespace rns

static bool isPrime(uint32_t q) {
  for (uint32_t d = 3; uint64_t(d) * d <= q; d += 2)
    if (q % d == 0) return false;
  return true;
}

int main() {
  using namespace rns;
  constexpr int kDigits = 6;
  const int n = 65536, limbs = 64;
  std::vector<Modulus> mods;
  for (uint32_t q = (1u << 30) + 1 - (1u << 15); int(mods.size()) < limbs; q -= 1u << 15)
    if (isPrime(q)) mods.push_back({~0ull / q, q, 0});

  const size_t plane = size_t(limbs) * n, total = plane * kDigits;
  std::vector<uint32_t> hd(total), h0(total), h1(total);
  uint64_t s = 0x9e3779b97f4a7c15ull;
  for (size_t i = 0; i < total; ++i) {
    const uint32_t q = mods[(i / n) % limbs].q;
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    hd[i] = uint32_t(s >> 34) % q;
    h0[i] = uint32_t(s >> 17) % q;
    h1[i] = uint32_t((s >> 40) * 2654435761u) % q;
  }
  uint32_t *d, *k0, *k1, *o0, *o1;
  Modulus* dm;
  CK(cudaMalloc(&d, total * 4));
  CK(cudaMalloc(&k0, total * 4));
  CK(cudaMalloc(&k1, total * 4));
  CK(cudaMalloc(&o0, plane * 4));
  CK(cudaMalloc(&o1, plane * 4));
  CK(cudaMalloc(&dm, limbs * sizeof(Modulus)));
  CK(cudaMemcpy(d, hd.data(), total * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(k0, h0.data(), total * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(k1, h1.data(), total * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dm, mods.data(), limbs * sizeof(Modulus), cudaMemcpyHostToDevice));

  const dim3 grid(n / 4 / 256, limbs);
  auto run = [&](auto kernel) {
    kernel<<<grid, 256>>>(reinterpret_cast<const uint4*>(d), reinterpret_cast<const uint4*>(k0),
                          reinterpret_cast<const uint4*>(k1), reinterpret_cast<uint4*>(o0),
                          reinterpret_cast<uint4*>(o1), dm, n / 4);
  };
  run(keyInnerProduct<MulMod, 3, false>);
  run(keyInnerProduct<MulMod, 3, true>);
  for (int i = 0; i < 5; ++i) run(keyInnerProduct<MulMod, kDigits, false>);
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 200;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) run(keyInnerProduct<MulMod, kDigits, false>);
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<uint32_t> r0(plane), r1(plane);
  CK(cudaMemcpy(r0.data(), o0, plane * 4, cudaMemcpyDeviceToHost));
  CK(cudaMemcpy(r1.data(), o1, plane * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < plane; i += 1009) {
    const uint32_t q = mods[i / n].q;
    uint64_t w0 = 0, w1 = 0;
    for (int k = 0; k < kDigits; ++k) {
      w0 = (w0 + uint64_t(hd[k * plane + i]) * h0[k * plane + i]) % q;
      w1 = (w1 + uint64_t(hd[k * plane + i]) * h1[k * plane + i]) % q;
    }
    if (w0 != r0[i] || w1 != r1[i]) {
      fprintf(stderr, "mismatch at %zu\n", i);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
