// SPDX-License-Identifier: Apache-2.0
// Recommendation inference: sum-pooled embedding bags.  Every sample refers to kBag rows of a table far larger than any cache; one warp pools one sample, a lane holding
// four of the row's 128 features.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x)                                                                    \
    do {                                                                         \
        cudaError_t c_ = (x);                                                    \
        if (c_ != cudaSuccess) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(c_));  \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr int kRows = 3 << 20;        // 1.6 GB of table
constexpr int kDim = 128;
constexpr int kVec = kDim / 4;
constexpr int kSamples = 65536;
constexpr int kBag = 16;
constexpr int kIters = 50;

__host__ __device__ inline uint32_t hash(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

__host__ __device__ inline float feature(uint32_t row, uint32_t d) {
    return (float)(int)(hash(row * 128u + d) & 1023u) * (1.0f / 512.0f) - 1.0f;
}

__host__ __device__ inline int rowOf(int sample, int k) {
    return (int)(hash((uint32_t)sample * kBag + k + 0x40000000u) % (uint32_t)kRows);
}

__global__ void fillTable(float4* table) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t row = (uint32_t)(i / kVec), d = (uint32_t)(i % kVec) * 4u;
    table[i] = make_float4(feature(row, d), feature(row, d + 1), feature(row, d + 2),
                           feature(row, d + 3));
}

__global__ void fillIndices(int* idx) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    idx[i] = rowOf(i / kBag, i % kBag);
}

__global__ void __launch_bounds__(256)
poolBags(const float4* __restrict__ table, const int* __restrict__ idx,
         float4* __restrict__ pooled) {
    const int lane = threadIdx.x & 31;
    const int sample = blockIdx.x * 8 + (threadIdx.x >> 5);
    const int mine = idx[sample * kBag + (lane & (kBag - 1))];
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
    for (int k0 = 0; k0 < kBag; k0 += 8) {
        float4 v[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            const int row = __shfl_sync(0xFFFFFFFFu, mine, k0 + k);
            v[k] = __ldg(table + (size_t)row * kVec + lane);
        }
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            sum.x += v[k].x;
            sum.y += v[k].y;
            sum.z += v[k].z;
            sum.w += v[k].w;
        }
    }
    pooled[sample * kVec + lane] = sum;
}

int main() {
    float4 *table, *pooled;
    int* idx;
    CK(cudaMalloc(&table, sizeof(float) * (size_t)kRows * kDim));
    CK(cudaMalloc(&pooled, sizeof(float) * (size_t)kSamples * kDim));
    CK(cudaMalloc(&idx, sizeof(int) * (size_t)kSamples * kBag));
    fillTable<<<(unsigned)((size_t)kRows * kVec / 256), 256>>>(table);
    fillIndices<<<kSamples * kBag / 256, 256>>>(idx);
    CK(cudaGetLastError());

    const int grid = kSamples / 8;
    poolBags<<<grid, 256>>>(table, idx, pooled);
    CK(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    CK(cudaEventRecord(a));
    for (int i = 0; i < kIters; ++i) poolBags<<<grid, 256>>>(table, idx, pooled);
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    CK(cudaGetLastError());
    float ms = 0.f;
    CK(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);

    std::vector<float> got((size_t)kSamples * kDim);
    CK(cudaMemcpy(got.data(), pooled, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int s = 3; s < kSamples; s += 509)
        for (int d = 0; d < kDim; d += 5) {
            double want = 0;
            for (int k = 0; k < kBag; ++k) want += feature(rowOf(s, k), d);
            if (!(std::fabs(got[(size_t)s * kDim + d] - want) < 1e-3)) ++bad;
        }
    if (bad) {
        printf("wrong features: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
