// SPDX-License-Identifier: Apache-2.0
// Forward negacyclic number-theoretic transforms of ciphertext polynomials in a residue number system.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t e_ = (call);                                                         \
    if (e_ != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

namespace he {

struct Modulus {
  uint32_t q;
  uint64_t ratio;  // floor(2^64 / q)

  __device__ __forceinline__ uint32_t mul(uint32_t a, uint32_t b) const {
    const uint64_t x = uint64_t(a) * b;
    const uint32_t rest = uint32_t(x) - uint32_t(__umul64hi(x, ratio)) * q;
    return min(rest, rest - q);
  }
  __device__ __forceinline__ uint32_t add(uint32_t a, uint32_t b) const { return min(a + b, a + b - q); }
  __device__ __forceinline__ uint32_t sub(uint32_t a, uint32_t b) const { return min(a - b, a - b + q); }
};

constexpr int kMaxPrimes = 8;
__constant__ Modulus c_modulus[kMaxPrimes];

// One block transforms one polynomial modulo one prime.
template <int LOG_N, int THREADS>
__global__ void __launch_bounds__(THREADS)
    forward_ntt(const uint32_t* __restrict__ in, uint32_t* __restrict__ out, const uint32_t* __restrict__ roots) {
  constexpr int N = 1 << LOG_N;
  __shared__ __align__(16) uint32_t a[N];
  const Modulus mod = c_modulus[blockIdx.y];
  const uint32_t* root = roots + blockIdx.y * N;
  const size_t base = (size_t(blockIdx.x) * gridDim.y + blockIdx.y) * N;

#pragma unroll
  for (int k = 0; k < N / 4 / THREADS; ++k)
    reinterpret_cast<uint4*>(a)[k * THREADS + threadIdx.x] = reinterpret_cast<const uint4*>(in + base)[k * THREADS + threadIdx.x];
  __syncthreads();

#pragma unroll 1
  for (int log_t = LOG_N - 1; log_t >= 0; --log_t) {
    const int m = N >> (log_t + 1);
#pragma unroll
    for (int k = 0; k < N / 2 / THREADS; ++k) {
      const int b = k * THREADS + threadIdx.x;
      const int group = b >> log_t;
      const int j = (group << (log_t + 1)) + (b & ((1 << log_t) - 1));
      const uint32_t u = a[j];
      const uint32_t v = mod.mul(a[j + (1 << log_t)], __ldg(root + m + group));
      a[j] = mod.add(u, v);
      a[j + (1 << log_t)] = mod.sub(u, v);
    }
    __syncthreads();
  }

#pragma unroll
  for (int k = 0; k < N / 4 / THREADS; ++k)
    reinterpret_cast<uint4*>(out + base)[k * THREADS + threadIdx.x] = reinterpret_cast<const uint4*>(a)[k * THREADS + threadIdx.x];
}

}  // namespace he

static uint64_t power(uint64_t b, uint64_t e, uint64_t q) {
  uint64_t r = 1;
  for (b %= q; e; e >>= 1, b = b * b % q)
    if (e & 1) r = r * b % q;
  return r;
}

static bool is_prime(uint32_t v) {
  for (uint32_t d = 3; uint64_t(d) * d <= v; d += 2)
    if (v % d == 0) return false;
  return v & 1;
}

int main() {
  constexpr int kLogN = 12, kN = 1 << kLogN, kPrimes = 4, kThreads = 512;
  const int polys = 1056;
  std::vector<he::Modulus> mods;
  std::vector<uint32_t> roots(size_t(kPrimes) * kN);
  for (uint32_t q = (1u << 30) - 2 * kN + 1; int(mods.size()) < kPrimes; q -= 2 * kN) {
    if (!is_prime(q)) continue;
    uint64_t psi = 0;
    for (uint64_t g = 2; power(psi, kN, q) != q - 1; ++g) psi = power(g, (q - 1) / (2 * kN), q);
    for (int i = 0; i < kN; ++i) {
      int rev = 0;
      for (int b = 0; b < kLogN; ++b) rev |= ((i >> b) & 1) << (kLogN - 1 - b);
      roots[mods.size() * kN + i] = uint32_t(power(psi, rev, q));
    }
    mods.push_back(he::Modulus{q, ~0ull / q});
  }

  const size_t n = size_t(polys) * kPrimes * kN;
  std::vector<uint32_t> in(n), out(n);
  uint64_t s = 42;
  for (size_t i = 0; i < n; ++i) {
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    in[i] = uint32_t(s >> 33) % mods[(i / kN) % kPrimes].q;
  }
  uint32_t *d_in, *d_out, *d_roots;
  CK(cudaMalloc(&d_in, n * sizeof(uint32_t)));
  CK(cudaMalloc(&d_out, n * sizeof(uint32_t)));
  CK(cudaMalloc(&d_roots, roots.size() * sizeof(uint32_t)));
  CK(cudaMemcpy(d_in, in.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_roots, roots.data(), roots.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(he::c_modulus, mods.data(), kPrimes * sizeof(he::Modulus)));

  auto step = [&] { he::forward_ntt<kLogN, kThreads><<<dim3(polys, kPrimes), kThreads>>>(d_in, d_out, d_roots); };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 100;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(out.data(), d_out, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));

  for (int c = 0; c < polys * kPrimes; c += 211) {
    const uint64_t q = mods[c % kPrimes].q;
    const uint32_t* root = roots.data() + size_t(c % kPrimes) * kN;
    std::vector<uint64_t> a(in.begin() + size_t(c) * kN, in.begin() + size_t(c + 1) * kN);
    for (int m = 1, t = kN / 2; m < kN; m *= 2, t /= 2)
      for (int i = 0; i < m; ++i)
        for (int j = 2 * i * t; j < 2 * i * t + t; ++j) {
          const uint64_t u = a[j], v = a[j + t] * root[m + i] % q;
          a[j] = (u + v) % q;
          a[j + t] = (u + q - v) % q;
        }
    for (int i = 0; i < kN; ++i)
      if (a[i] != out[size_t(c) * kN + i]) {
        std::fprintf(stderr, "wrong coefficient %d of transform %d\n", i, c);
        return 1;
      }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
