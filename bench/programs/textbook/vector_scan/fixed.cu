// SPDX-License-Identifier: Apache-2.0
// Exhaustive nearest-neighbour scan: squared distances of a database of vectors to a batch of queries.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

template <class Launch>
static double time_us(Launch launch, int warm = 20, int reps = 50) {
    for (int i = 0; i < warm; ++i) launch();
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < reps; ++i) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    CUDA_CHECK(cudaEventDestroy(begin));
    CUDA_CHECK(cudaEventDestroy(end));
    return 1e3 * ms / reps;
}

constexpr int kDim = 128;
constexpr int kQueries = 8;
constexpr int kTile = 128;          // vectors a tile
constexpr int kThreads = 512;
constexpr int kPitch = kDim + 4;    // floats
constexpr int kQuads = kTile * kDim / 4;
constexpr int kTileFloats = kTile * kPitch;
constexpr size_t kShared = (2 * kTileFloats + kQueries * kPitch) * sizeof(float);

__device__ __forceinline__ float* tile_slot(float* tile, int quad) {
    return tile + quad / (kDim / 4) * kPitch + quad % (kDim / 4) * 4;
}

// Distances of one staged tile; four lanes share a vector, each with two of the queries.
__device__ __forceinline__ void score_tile(const float* tile, const float* queries, float* __restrict__ dist, int n, int first) {
    const int v = threadIdx.x >> 2, q = (threadIdx.x & 3) * 2;
    const float4* vec = (const float4*)(tile + v * kPitch);
    const float4* qa = (const float4*)(queries + q * kPitch);
    const float4* qb = (const float4*)(queries + (q + 1) * kPitch);
    float a = 0.f, b = 0.f;
#pragma unroll 8
    for (int d = 0; d < kDim / 4; ++d) {
        const float4 x = vec[d], s = qa[d], t = qb[d];
        a = fmaf(x.x - s.x, x.x - s.x, a);
        b = fmaf(x.x - t.x, x.x - t.x, b);
        a = fmaf(x.y - s.y, x.y - s.y, a);
        b = fmaf(x.y - t.y, x.y - t.y, b);
        a = fmaf(x.z - s.z, x.z - s.z, a);
        b = fmaf(x.z - t.z, x.z - t.z, b);
        a = fmaf(x.w - s.w, x.w - s.w, a);
        b = fmaf(x.w - t.w, x.w - t.w, b);
    }
    dist[(size_t)q * n + first + v] = a;
    dist[(size_t)(q + 1) * n + first + v] = b;
}

__global__ void __launch_bounds__(kThreads, 1)
scan_database(const float4* __restrict__ base, const float* __restrict__ query, float* __restrict__ dist, int n) {
    extern __shared__ float4 raw[];
    float* tiles = (float*)raw;
    float* queries = tiles + 2 * kTileFloats;
    for (int i = threadIdx.x; i < kQueries * kDim; i += kThreads) queries[i / kDim * kPitch + i % kDim] = query[i];

    const int n_tiles = n / kTile;
    auto fetch = [&](int t, float* tile) {
        if (t < n_tiles) {
#pragma unroll
            for (int r = 0; r < kQuads / kThreads; ++r) {
                const int i = threadIdx.x + r * kThreads;
                __pipeline_memcpy_async(tile_slot(tile, i), base + (size_t)t * kQuads + i, sizeof(float4));
            }
        }
        __pipeline_commit();
    };
    int turn = 0;
    fetch(blockIdx.x, tiles);
    for (int t = blockIdx.x; t < n_tiles; t += gridDim.x, turn ^= 1) {
        fetch(t + gridDim.x, tiles + (turn ^ 1) * kTileFloats);
        __pipeline_wait_prior(1);
        __syncthreads();
        score_tile(tiles + turn * kTileFloats, queries, dist, n, t * kTile);
        __syncthreads();
    }
}

__global__ void make_base(float* base, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        uint32_t h = (uint32_t)i * 2654435761u;
        h ^= h >> 16;
        h *= 2246822519u;
        base[i] = (float)(h >> 8) * (2.f / 16777216.f) - 1.f;
    }
}

int main() {
    const int n = 132 * 32 * kTile;
    std::vector<float> query(kQueries * kDim), dist((size_t)kQueries * n), vec(kDim);
    for (int i = 0; i < kQueries * kDim; ++i) query[i] = std::sin(0.37f * (float)i);
    float *base, *d_query, *d_dist;
    CUDA_CHECK(cudaMalloc(&base, (size_t)n * kDim * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_query, query.size() * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_dist, dist.size() * sizeof(float)));
    make_base<<<1056, 256>>>(base, (size_t)n * kDim);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(d_query, query.data(), query.size() * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaFuncSetAttribute(scan_database, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)kShared));

    int sms = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const double us = time_us([&] {
        scan_database<<<sms, kThreads, kShared>>>((const float4*)base, d_query, d_dist, n);
    });

    CUDA_CHECK(cudaMemcpy(dist.data(), d_dist, dist.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int v = 13; v < n; v += 4001) {
        CUDA_CHECK(cudaMemcpy(vec.data(), base + (size_t)v * kDim, kDim * sizeof(float), cudaMemcpyDeviceToHost));
        for (int q = 0; q < kQueries; ++q) {
            double sum = 0.0;
            for (int d = 0; d < kDim; ++d) {
                const double e = (double)vec[d] - query[q * kDim + d];
                sum += e * e;
            }
            if (!(std::fabs(sum - dist[(size_t)q * n + v]) < 1e-3)) ok = false;
        }
    }
    double checksum = 0.0;
    for (float d : dist) checksum += d;
    std::printf("checksum: %.2f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
