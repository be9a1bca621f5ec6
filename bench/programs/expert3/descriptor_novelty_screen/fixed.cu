// SPDX-License-Identifier: Apache-2.0. Novelty screen of candidate crystal structures: the Manhattan distance of
// each candidate's descriptor to the nearest structure of the reference set.
// Descriptors are stored feature-major.  128x128 pairs per block, 8x8 per
// thread, feature slabs double-buffered with cp.async.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kCandidates = 8192, kReferences = 4224, kFeatures = 128;
constexpr int kTile = 128, kSlab = 8, kThreads = 256;

__host__ __device__ inline float feature(uint32_t set, uint32_t f, uint32_t i)
{
    uint32_t h = i * 2654435761u ^ (f * 2246822519u + set * 3266489917u);
    h ^= h >> 15; h *= 0x2c1b3c6du; h ^= h >> 12;
    return (h >> 8) * (1.0f / 16777216.0f);
}

__global__ void describe(float* d, int n, uint32_t set)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    d[size_t(blockIdx.y) * n + i] = feature(set, blockIdx.y, i);
}

__device__ __forceinline__ void copy16(void* dst, const void* src)
{
    const uint32_t d = uint32_t(__cvta_generic_to_shared(dst));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(d), "l"(src) : "memory");
}

__device__ __forceinline__ void load8(float (&r)[8], const float* row, int q)
{
    const float4 a = *reinterpret_cast<const float4*>(row + 4 * q);
    const float4 b = *reinterpret_cast<const float4*>(row + 64 + 4 * q);
    r[0] = a.x; r[1] = a.y; r[2] = a.z; r[3] = a.w;
    r[4] = b.x; r[5] = b.y; r[6] = b.z; r[7] = b.w;
}

__global__ void __launch_bounds__(kThreads, 2)
nearest_reference(const float* __restrict__ cand, const float* __restrict__ ref, int* __restrict__ best)
{
    __shared__ __align__(16) float sa[2][kSlab][kTile];
    __shared__ __align__(16) float sb[2][kSlab][kTile];
    const int tid = threadIdx.x, tx = tid & 15, ty = tid >> 4;
    const int row0 = blockIdx.y * kTile, col0 = blockIdx.x * kTile;

    auto fetch = [&](int slab, int buf) {
        const int k = tid >> 5, q = (tid & 31) * 4;
        const size_t f = size_t(slab) * kSlab + k;
        copy16(&sa[buf][k][q], cand + f * kCandidates + row0 + q);
        copy16(&sb[buf][k][q], ref + f * kReferences + col0 + q);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float acc[8][8] = {};
    fetch(0, 0);
    for (int s = 0; s < kFeatures / kSlab; ++s) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        if (s + 1 < kFeatures / kSlab) fetch(s + 1, (s + 1) & 1);
#pragma unroll 2
        for (int k = 0; k < kSlab; ++k) {
            float a[8], b[8];
            load8(a, sa[s & 1][k], ty);
            load8(b, sb[s & 1][k], tx);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] += fabsf(a[i] - b[j]);
        }
    }

    // distances are positive, so their bit patterns order like integers
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        float m = acc[i][0];
#pragma unroll
        for (int j = 1; j < 8; ++j) m = fminf(m, acc[i][j]);
#pragma unroll
        for (int d = 8; d > 0; d >>= 1) m = fminf(m, __shfl_xor_sync(~0u, m, d));
        const int row = row0 + (i < 4 ? 4 * ty + i : 64 + 4 * ty + i - 4);
        if (tx == 0) atomicMin(best + row, __float_as_int(m));
    }
}

int main()
{
    float *cand, *ref; int* best;
    CHECK(cudaMalloc(&cand, sizeof(float) * kCandidates * kFeatures));
    CHECK(cudaMalloc(&ref, sizeof(float) * kReferences * kFeatures));
    CHECK(cudaMalloc(&best, sizeof(int) * kCandidates));
    describe<<<dim3(kCandidates / 128, kFeatures), 128>>>(cand, kCandidates, 1);
    describe<<<dim3(kReferences / 128, kFeatures), 128>>>(ref, kReferences, 2);

    const dim3 grid(kReferences / kTile, kCandidates / kTile);
    const int iterations = 30;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    for (int i = -2; i < iterations; ++i) {
        if (i == 0) CHECK(cudaEventRecord(t0));
        CHECK(cudaMemsetAsync(best, 0x7f, sizeof(int) * kCandidates));
        nearest_reference<<<grid, kThreads>>>(cand, ref, best);
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float> got(kCandidates);
    CHECK(cudaMemcpy(got.data(), best, sizeof(float) * kCandidates, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 24; ++k) {
        const int c = (k * 1361 + 77) % kCandidates;
        float x[kFeatures];
        for (int f = 0; f < kFeatures; ++f) x[f] = feature(1, f, c);
        double want = 1e30;
        for (int r = 0; r < kReferences; ++r) {
            double d = 0.0;
            for (int f = 0; f < kFeatures; ++f) d += std::fabs(double(x[f]) - feature(2, f, r));
            want = std::fmin(want, d);
        }
        if (!(std::fabs(got[c] - want) <= 1e-4 * want)) {
            std::printf("candidate %d: %g, expected %g\n", c, got[c], want);
            return 1;
        }
    }
    return 0;
}
