// SPDX-License-Identifier: Apache-2.0
// Multiplies RNS polynomials of Z_q[x]/(x^4096+1) by a fixed evaluation key through negacyclic number-theoretic transforms.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(call)                                                              \
    do {                                                                           \
        cudaError_t err_ = (call);                                                 \
        if (err_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(2);                                                          \
        }                                                                          \
    } while (0)

[[maybe_unused]] static inline uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
[[maybe_unused]] static inline float unit(uint32_t x) { return (hash32(x) >> 8) * (1.0f / 16777216.0f); }

template <class Step>
static float time_steps(int warm, int iters, Step step)
{
    for (int i = 0; i < warm; ++i) step();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    CUDA_OK(cudaEventCreate(&a));
    CUDA_OK(cudaEventCreate(&b));
    CUDA_OK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CUDA_OK(cudaEventRecord(b));
    CUDA_OK(cudaEventSynchronize(b));
    CUDA_OK(cudaGetLastError());
    float ms = 0.f;
    CUDA_OK(cudaEventElapsedTime(&ms, a, b));
    CUDA_OK(cudaEventDestroy(a));
    CUDA_OK(cudaEventDestroy(b));
    return ms * 1000.f / iters;
}

namespace rns {

constexpr int kLog = 12;
constexpr int kDegree = 1 << kLog;
constexpr int kThreads = kDegree / 8;
constexpr int kLimbs = 8;

struct Modulus {
    uint32_t q;
    uint32_t inv_n;
    uint32_t inv_n_shoup;
    uint32_t unused;
    uint64_t barrett;  // floor((2^64 - 1) / q)
};

__constant__ Modulus c_mod[kLimbs];

__host__ __device__ constexpr int padded(int i) { return i + ((i >> 6) << 3); }

// a * w mod q, with w' = floor(w * 2^32 / q)
__device__ __forceinline__ uint32_t mul_shoup(uint32_t a, uint2 w, uint32_t q)
{
    const uint32_t r = a * w.x - __umulhi(a, w.y) * q;
    return min(r, r - q);
}
__device__ __forceinline__ uint32_t add_mod(uint32_t a, uint32_t b, uint32_t q)
{
    const uint32_t s = a + b;
    return min(s, s - q);
}
__device__ __forceinline__ uint32_t sub_mod(uint32_t a, uint32_t b, uint32_t q)
{
    const uint32_t d = a - b;
    return min(d, d + q);
}

__device__ __forceinline__ uint32_t mul_mod(uint32_t a, uint32_t b, const Modulus& m)
{
    const uint64_t p = static_cast<uint64_t>(a) * b;
    return static_cast<uint32_t>(p % m.q);
}

struct Forward {
    __device__ static void butterfly(uint32_t& a, uint32_t& b, uint2 w, uint32_t q)
    {
        const uint32_t t = mul_shoup(b, w, q);
        b = sub_mod(a, t, q);
        a = add_mod(a, t, q);
    }
};
struct Inverse {
    __device__ static void butterfly(uint32_t& a, uint32_t& b, uint2 w, uint32_t q)
    {
        const uint32_t d = sub_mod(a, b, q);
        a = add_mod(a, b, q);
        b = mul_shoup(d, w, q);
    }
};

// Three levels at once: blocks of 8*Stride values, Blocks = N / (8*Stride) of them.
template <class Direction, int Stride>
__device__ __forceinline__ void radix8(uint32_t (&v)[8], const uint2* __restrict__ roots, uint32_t q)
{
    constexpr int kBlocks = kDegree / (8 * Stride);
    const int block = threadIdx.x / Stride;
    constexpr bool kForward = Direction::kForward;
#pragma unroll
    for (int step = 0; step < 3; ++step) {
        const int level = kForward ? step : 2 - step;
        const int half = 4 >> level;
#pragma unroll
        for (int g = 0; g < (1 << level); ++g) {
            const uint2 w = __ldg(roots + (kBlocks << level) + (block << level) + g);
#pragma unroll
            for (int k = 0; k < half; ++k) Direction::Kind::butterfly(v[g * 2 * half + k], v[g * 2 * half + half + k], w, q);
        }
    }
}
struct ForwardPass { static constexpr bool kForward = true; using Kind = Forward; };
struct InversePass { static constexpr bool kForward = false; using Kind = Inverse; };

template <int Stride>
__device__ __forceinline__ int first_of() { return (threadIdx.x / Stride) * 8 * Stride + threadIdx.x % Stride; }

template <int Stride>
__device__ __forceinline__ void load(uint32_t (&v)[8], const uint32_t* s)
{
    if constexpr (Stride == 1) {
        const uint4* p = reinterpret_cast<const uint4*>(s + padded(first_of<1>()));
        const uint4 a = p[0], b = p[1];
        v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
        v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
    } else {
#pragma unroll
        for (int k = 0; k < 8; ++k) v[k] = s[padded(first_of<Stride>() + k * Stride)];
    }
}

template <int Stride>
__device__ __forceinline__ void store(const uint32_t (&v)[8], uint32_t* s)
{
    if constexpr (Stride == 1) {
        uint4* p = reinterpret_cast<uint4*>(s + padded(first_of<1>()));
        p[0] = make_uint4(v[0], v[1], v[2], v[3]);
        p[1] = make_uint4(v[4], v[5], v[6], v[7]);
    } else {
#pragma unroll
        for (int k = 0; k < 8; ++k) s[padded(first_of<Stride>() + k * Stride)] = v[k];
    }
}

template <bool Accumulate>
__global__ void __launch_bounds__(kThreads, 2)
multiply_by_key(const uint32_t* __restrict__ poly, const uint32_t* __restrict__ key, uint32_t* __restrict__ out,
                const uint2* __restrict__ fwd_roots, const uint2* __restrict__ inv_roots)
{
    __shared__ __align__(16) uint32_t s[kDegree + kDegree / 8];
    const int limb = blockIdx.x % kLimbs;
    const Modulus mod = c_mod[limb];
    const uint32_t q = mod.q;
    const size_t base = static_cast<size_t>(blockIdx.x) * kDegree;
    const uint2* fwd = fwd_roots + limb * kDegree;
    const uint2* inv = inv_roots + limb * kDegree;
    uint32_t v[8];

#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = poly[base + threadIdx.x + k * kThreads];
    radix8<ForwardPass, 512>(v, fwd, q);
    store<512>(v, s);
    __syncthreads();
    load<64>(v, s);
    radix8<ForwardPass, 64>(v, fwd, q);
    store<64>(v, s);
    __syncthreads();
    load<8>(v, s);
    radix8<ForwardPass, 8>(v, fwd, q);
    store<8>(v, s);
    __syncthreads();
    load<1>(v, s);
    radix8<ForwardPass, 1>(v, fwd, q);

    const uint4* kp = reinterpret_cast<const uint4*>(key + limb * kDegree) + threadIdx.x * 2;
    const uint4 k0 = __ldg(kp), k1 = __ldg(kp + 1);
    const uint32_t kv[8] = {k0.x, k0.y, k0.z, k0.w, k1.x, k1.y, k1.z, k1.w};
#pragma unroll
    for (int k = 0; k < 8; ++k) v[k] = mul_mod(v[k], kv[k], mod);

    radix8<InversePass, 1>(v, inv, q);
    store<1>(v, s);
    __syncthreads();
    load<8>(v, s);
    radix8<InversePass, 8>(v, inv, q);
    store<8>(v, s);
    __syncthreads();
    load<64>(v, s);
    radix8<InversePass, 64>(v, inv, q);
    store<64>(v, s);
    __syncthreads();
    load<512>(v, s);
    radix8<InversePass, 512>(v, inv, q);
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        const size_t at = base + threadIdx.x + k * kThreads;
        uint32_t r = mul_shoup(v[k], make_uint2(mod.inv_n, mod.inv_n_shoup), q);
        if constexpr (Accumulate) r = add_mod(r, out[at], q);
        out[at] = r;
    }
}

}  // namespace rns

static uint32_t power(uint64_t b, uint64_t e, uint64_t q)
{
    uint64_t r = 1;
    for (; e; e >>= 1, b = b * b % q)
        if (e & 1) r = r * b % q;
    return static_cast<uint32_t>(r);
}
static bool is_prime(uint32_t n)
{
    for (uint32_t d = 3; static_cast<uint64_t>(d) * d <= n; d += 2)
        if (n % d == 0) return false;
    return true;
}
static int reversed(int i)
{
    int r = 0;
    for (int b = 0; b < rns::kLog; ++b) r |= (i >> b & 1) << (rns::kLog - 1 - b);
    return r;
}

int main()
{
    using namespace rns;
    constexpr int kPolys = 693;
    const size_t n = static_cast<size_t>(kPolys) * kLimbs * kDegree;
    Modulus mod[kLimbs];
    std::vector<uint2> fwd(kLimbs * kDegree), inv(kLimbs * kDegree);
    std::vector<uint32_t> key(kLimbs * kDegree), key_ntt(kLimbs * kDegree), poly(n), got(n);
    uint32_t candidate = (1u << 30) + 1;
    for (int l = 0; l < kLimbs; ++l) {
        do candidate -= 2 * kDegree; while (!is_prime(candidate));
        const uint32_t q = candidate;
        uint32_t psi = 0;
        for (uint32_t g = 2;; ++g) {
            psi = power(g, (q - 1) / (2 * kDegree), q);
            if (power(psi, kDegree, q) == q - 1) break;
        }
        const uint32_t psi_inv = power(psi, q - 2, q);
        auto shoup = [q](uint32_t w) { return make_uint2(w, static_cast<uint32_t>((static_cast<uint64_t>(w) << 32) / q)); };
        for (int i = 0; i < kDegree; ++i) {
            fwd[l * kDegree + i] = shoup(power(psi, reversed(i), q));
            inv[l * kDegree + i] = shoup(power(psi_inv, reversed(i), q));
        }
        const uint2 in = shoup(power(kDegree, q - 2, q));
        mod[l] = {q, in.x, in.y, 0u, ~0ull / q};
        uint32_t* a = &key_ntt[l * kDegree];
        for (int i = 0; i < kDegree; ++i) a[i] = key[l * kDegree + i] = hash32(0x30000000u + l * kDegree + i) % q;
        for (int m = 1, t = kDegree / 2; m < kDegree; m *= 2, t /= 2)
            for (int i = 0; i < m; ++i)
                for (int j = 2 * i * t; j < 2 * i * t + t; ++j) {
                    const uint32_t u = a[j], v = static_cast<uint32_t>(static_cast<uint64_t>(a[j + t]) * fwd[l * kDegree + m + i].x % q);
                    a[j] = (u + v) % q;
                    a[j + t] = (u + q - v) % q;
                }
    }
    for (size_t i = 0; i < n; ++i) poly[i] = hash32(static_cast<uint32_t>(i)) % mod[i / kDegree % kLimbs].q;

    uint32_t *d_poly, *d_key, *d_out; uint2 *d_fwd, *d_inv;
    CUDA_OK(cudaMemcpyToSymbol(c_mod, mod, sizeof(mod)));
    CUDA_OK(cudaMalloc(&d_poly, n * 4));
    CUDA_OK(cudaMalloc(&d_out, n * 4));
    CUDA_OK(cudaMalloc(&d_key, key.size() * 4));
    CUDA_OK(cudaMalloc(&d_fwd, fwd.size() * sizeof(uint2)));
    CUDA_OK(cudaMalloc(&d_inv, inv.size() * sizeof(uint2)));
    CUDA_OK(cudaMemcpy(d_poly, poly.data(), n * 4, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_key, key_ntt.data(), key.size() * 4, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_fwd, fwd.data(), fwd.size() * sizeof(uint2), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_inv, inv.data(), inv.size() * sizeof(uint2), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemset(d_out, 0, n * 4));

    multiply_by_key<true><<<kPolys * kLimbs, kThreads>>>(d_poly, d_key, d_out, d_fwd, d_inv);
    const float us = time_steps(3, 60, [&] {
        multiply_by_key<false><<<kPolys * kLimbs, kThreads>>>(d_poly, d_key, d_out, d_fwd, d_inv);
    });

    CUDA_OK(cudaMemcpy(got.data(), d_out, n * 4, cudaMemcpyDeviceToHost));
    for (int s = 0; s < 400; ++s) {
        const size_t row = s < 16 ? kPolys * kLimbs - 1 - s : hash32(s) % (kPolys * kLimbs);
        const int l = static_cast<int>(row % kLimbs), k = static_cast<int>(hash32(s + 7777) % kDegree);
        const uint64_t q = mod[l].q;
        const uint32_t* a = &poly[row * kDegree];
        const uint32_t* b = &key[l * kDegree];
        uint64_t r = 0;
        for (int i = 0; i < kDegree; ++i) {
            const uint64_t p = static_cast<uint64_t>(a[i]) * b[(k - i) & (kDegree - 1)] % q;
            r += i <= k ? p : q - p;
        }
        if (got[row * kDegree + k] != r % q) {
            std::fprintf(stderr, "polynomial %zu coefficient %d: got %u, expected %u\n", row, k, got[row * kDegree + k], static_cast<unsigned>(r % q));
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
