// SPDX-License-Identifier: Apache-2.0
// Shamir secret sharing: every secret becomes the constant term of a random cubic over GF(q), evaluated per party.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

using u32 = uint32_t;
using u64 = uint64_t;

constexpr int kParties = 5;
constexpr int kDegree = 3;

struct Field {
    u32 q;
    u64 reciprocal;   // floor((2^64 - 1) / q)
    u32 points[kParties];
};

static void ensure(cudaError_t e) {
    if (e != cudaSuccess) {
        std::fputs(cudaGetErrorString(e), stderr);
        std::exit(2);
    }
}

__host__ __device__ inline u32 prf(u32 key, u32 counter) {
    u32 h = counter * 0xcc9e2d51u ^ key;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    return h ^ (h >> 16);
}

__device__ __forceinline__ u32 mul_add(u32 a, u32 b, u32 c, const Field& f) {
    const u64 v = (u64)a * b + c;
    const u32 r = (u32)v - (u32)__umul64hi(v, f.reciprocal) * f.q;
    return r >= f.q ? r - f.q : r;
}

__global__ void __launch_bounds__(256)
deal_shares(const u32* __restrict__ secrets, u32* __restrict__ shares, u32 key, Field field, int n) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    u32 coefficient[kDegree + 1];
    coefficient[0] = secrets[i];
#pragma unroll
    for (int k = 1; k <= kDegree; ++k) coefficient[k] = prf(key + k, i) >> 2;
#pragma unroll
    for (int party = 0; party < kParties; ++party) {
        u32 y = coefficient[kDegree];
#pragma unroll
        for (int k = kDegree - 1; k >= 0; --k) y = mul_add(y, field.points[party], coefficient[k], field);
        shares[(size_t)party * n + i] = y;
    }
}

__global__ void make_secrets(u32* secrets, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) secrets[i] = prf(0x5eedu, i) >> 2;
}

int main() {
    const int n = 1 << 23;
    const u32 q = 2147483629u, key = 0x1337u;   // prime below 2^31
    Field field{};
    field.q = q;
    field.reciprocal = ~0ull / q;
    for (int p = 0; p < kParties; ++p) field.points[p] = prf(77u, p) % q;

    u32 *d_secrets, *d_shares;
    ensure(cudaMalloc(&d_secrets, sizeof(u32) * n));
    ensure(cudaMalloc(&d_shares, sizeof(u32) * n * kParties));
    make_secrets<<<n / 256, 256>>>(d_secrets, n);

    cudaEvent_t begin, end;
    ensure(cudaEventCreate(&begin));
    ensure(cudaEventCreate(&end));
    const int rounds = 100;
    for (int i = 0; i < 5; ++i) deal_shares<<<n / 256, 256>>>(d_secrets, d_shares, key, field, n);
    ensure(cudaEventRecord(begin));
    for (int i = 0; i < rounds; ++i) deal_shares<<<n / 256, 256>>>(d_secrets, d_shares, key, field, n);
    ensure(cudaEventRecord(end));
    ensure(cudaEventSynchronize(end));
    ensure(cudaGetLastError());
    float ms = 0.f;
    ensure(cudaEventElapsedTime(&ms, begin, end));

    std::vector<u32> shares((size_t)n * kParties);
    ensure(cudaMemcpy(shares.data(), d_shares, sizeof(u32) * shares.size(), cudaMemcpyDeviceToHost));
    bool ok = true;
    u64 digest = 0;
    for (int i = 0; i < n; i += 61)
        for (int p = 0; p < kParties; ++p) {
            u64 y = 0;
            for (int k = kDegree; k >= 1; --k) y = (y * field.points[p] + (prf(key + k, i) >> 2)) % q;
            y = (y * field.points[p] + (prf(0x5eedu, i) >> 2)) % q;
            const u32 have = shares[(size_t)p * n + i];
            ok = ok && have == (u32)y;
            digest = digest * 31 + have;
        }
    std::printf("digest: %llu\n", (unsigned long long)digest);
    std::printf("us_per_iteration: %.3f\n", ms * 1e3 / rounds);
    return ok ? 0 : 1;
}
