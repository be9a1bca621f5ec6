// SPDX-License-Identifier: Apache-2.0
// Threshold secret sharing over a prime field: every record is split in kShares shares, of which any kThreshold recover it.  A share is the record's random polynomial
// evaluated at the holder's public point.  The field's prime is chosen per deployment.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(expr)                                                                \
    do {                                                                        \
        cudaError_t err = (expr);                                               \
        if (err != cudaSuccess) {                                               \
            fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(err)); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

constexpr int kRecords = 1 << 20;
constexpr int kThreshold = 8;
constexpr int kShares = 12;
constexpr int kRounds = 40;

struct Field {
    uint32_t p;    // prime, above 2^31
    uint64_t mu;   // floor((2^64 - 1) / p)
};

struct Holders {
    uint32_t point[kShares];
};

__host__ __device__ inline uint64_t splitmix(uint64_t z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

__host__ __device__ inline uint32_t coefficient(int record, int k, uint32_t p) {
    return (uint32_t)(splitmix((uint64_t)record * kThreshold + k) % p);
}

// Coefficient-major so that neighbouring records are neighbours in memory.
__global__ void drawPolynomials(uint32_t* coef, Field f) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= kRecords) return;
    for (int k = 0; k < kThreshold; ++k)
        coef[(size_t)k * kRecords + r] = coefficient(r, k, f.p);
}

// Reduces a product plus an addend into [0, p).
__device__ __forceinline__ uint32_t reduce(uint64_t v, const Field& f) {
    return (uint32_t)(v % f.p);
}

__device__ __forceinline__ uint32_t mulAdd(uint32_t a, uint32_t b, uint32_t c, const Field& f) {
    return reduce((uint64_t)a * b + c, f);
}

__global__ void __launch_bounds__(256)
makeShares(const uint32_t* __restrict__ coef, uint32_t* __restrict__ shares, Field f,
           Holders holders) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= kRecords) return;

    uint32_t c[kThreshold];
#pragma unroll
    for (int k = 0; k < kThreshold; ++k) c[k] = coef[(size_t)k * kRecords + r];

#pragma unroll 4
    for (int s = 0; s < kShares; ++s) {
        const uint32_t x = holders.point[s];
        uint32_t y = c[kThreshold - 1];
#pragma unroll
        for (int k = kThreshold - 2; k >= 0; --k) y = mulAdd(y, x, c[k], f);
        shares[(size_t)s * kRecords + r] = y;
    }
}

// Recovers the constant term from the first kThreshold shares by Lagrange at zero.
static uint64_t powMod(uint64_t b, uint64_t e, uint64_t p) {
    uint64_t r = 1;
    b %= p;
    while (e) {
        if (e & 1) r = r * b % p;
        b = b * b % p;
        e >>= 1;
    }
    return r;
}

static std::vector<uint64_t> lagrangeWeights(const Holders& h, int first, uint64_t p) {
    std::vector<uint64_t> w(kThreshold);
    for (int i = 0; i < kThreshold; ++i) {
        uint64_t num = 1, den = 1;
        for (int j = 0; j < kThreshold; ++j) {
            if (j == i) continue;
            const uint64_t xi = h.point[first + i], xj = h.point[first + j];
            num = num * xj % p;
            den = den * ((xj + p - xi) % p) % p;
        }
        w[i] = num * powMod(den, p - 2, p) % p;
    }
    return w;
}

int main(int argc, char**) {
    Field f;
    f.p = argc > 5 ? 4294967279u : 4294967291u;
    f.mu = ~0ull / f.p;

    Holders holders;
    for (int s = 0; s < kShares; ++s)
        holders.point[s] = (uint32_t)(splitmix(7000 + s) % (f.p - 1)) + 1u;

    uint32_t *coef, *shares;
    CK(cudaMalloc(&coef, sizeof(uint32_t) * (size_t)kRecords * kThreshold));
    CK(cudaMalloc(&shares, sizeof(uint32_t) * (size_t)kRecords * kShares));
    const int grid = kRecords / 256;
    drawPolynomials<<<grid, 256>>>(coef, f);
    CK(cudaGetLastError());

    makeShares<<<grid, 256>>>(coef, shares, f, holders);
    CK(cudaDeviceSynchronize());

    cudaEvent_t begin, end;
    CK(cudaEventCreate(&begin));
    CK(cudaEventCreate(&end));
    CK(cudaEventRecord(begin));
    for (int i = 0; i < kRounds; ++i) makeShares<<<grid, 256>>>(coef, shares, f, holders);
    CK(cudaEventRecord(end));
    CK(cudaEventSynchronize(end));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, begin, end));
    printf("us_per_iteration: %.3f\n", ms * 1000.0 / kRounds);

    std::vector<uint32_t> out((size_t)kRecords * kShares);
    CK(cudaMemcpy(out.data(), shares, out.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int first = 0; first <= kShares - kThreshold; first += kShares - kThreshold) {
        const std::vector<uint64_t> w = lagrangeWeights(holders, first, f.p);
        for (int t = 0; t < 3000; ++t) {
            const int r = (int)(splitmix(123456 + t) % kRecords);
            uint64_t secret = 0;
            for (int i = 0; i < kThreshold; ++i)
                secret = (secret + w[i] * out[(size_t)(first + i) * kRecords + r] % f.p) % f.p;
            if (secret != coefficient(r, 0, f.p)) ++bad;
        }
    }
    if (bad) {
        printf("unrecoverable records: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
