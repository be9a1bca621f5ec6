// SPDX-License-Identifier: Apache-2.0
// Search engine: upper bound and total of the BM25 impacts of every posting list; lists lie by falling length.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

static void expect_ok(cudaError_t e, int line) {
    if (e != cudaSuccess) {
        printf("line %d: %s\n", line, cudaGetErrorString(e));
        exit(2);
    }
}
#define EXPECT_OK(x) expect_ok((x), __LINE__)

constexpr int kLists = 65536;
constexpr int kThreads = 256;
constexpr int kAhead = 4;   // postings per lane and trip

struct Bound {
    float top, sum;
};

// posting: term frequency (low byte), document length class (next byte)
__host__ __device__ inline uint32_t posting_at(uint32_t i) {
    uint32_t h = i * 0x9E3779B1u;
    h ^= h >> 15;
    h *= 0x85EBCA77u;
    h ^= h >> 13;
    return ((h >> 24) & 31u) + 1u | (h & 0xff00u);
}
__host__ __device__ inline float impact(uint32_t posting) {
    const float tf = (float)(posting & 0xffu);
    const float norm = 0.3f + 0.02f * (float)(posting >> 8 & 0xffu);
    return 2.2f * tf / (tf + norm);
}

__global__ void build(uint32_t* postings, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) postings[i] = posting_at(i);
}

__global__ void __launch_bounds__(kThreads)
bound_lists(const uint32_t* __restrict__ postings, const uint32_t* __restrict__ start, Bound* __restrict__ bounds) {
    const int lane = threadIdx.x % 32;
    const int warp = (blockIdx.x * kThreads + threadIdx.x) / 32, warps = gridDim.x * (kThreads / 32);
    for (int list = warp; list < kLists; list += warps) {
        const uint32_t end = start[list + 1];
        float top = 0.f, sum = 0.f;
        for (uint32_t i = start[list] + lane; i < end; i += 32 * kAhead) {
            uint32_t p[kAhead];
#pragma unroll
            for (int k = 0; k < kAhead; ++k) p[k] = i + 32 * k < end ? postings[i + 32 * k] : 0u;
#pragma unroll
            for (int k = 0; k < kAhead; ++k) {
                const float tf = (float)(p[k] & 0xffu);
                const float v = __fdividef(2.2f * tf, tf + 0.3f + 0.02f * (float)(p[k] >> 8 & 0xffu));
                top = fmaxf(top, v);
                sum += v;
            }
        }
        for (int d = 16; d; d >>= 1) {
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
            sum += __shfl_xor_sync(0xffffffffu, sum, d);
        }
        if (lane == 0) bounds[list] = {top, sum};
    }
}

int main() {
    std::vector<uint32_t> start(kLists + 1, 0);
    for (int i = 0; i < kLists; ++i) start[i + 1] = start[i] + (uint32_t)(137600.0 / std::sqrt(i + 512.0));
    const uint32_t total = start[kLists];
    uint32_t *d_postings, *d_start;
    Bound* d_bounds;
    EXPECT_OK(cudaMalloc(&d_postings, (size_t)total * sizeof(uint32_t)));
    EXPECT_OK(cudaMalloc(&d_start, start.size() * sizeof(uint32_t)));
    EXPECT_OK(cudaMalloc(&d_bounds, kLists * sizeof(Bound)));
    EXPECT_OK(cudaMemcpy(d_start, start.data(), start.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
    build<<<(total + 255) / 256, 256>>>(d_postings, total);

    int sms = 0;
    EXPECT_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int blocks = 4 * sms;
    cudaEvent_t t0, t1;
    EXPECT_OK(cudaEventCreate(&t0));
    EXPECT_OK(cudaEventCreate(&t1));
    for (int i = 0; i < 5; ++i) bound_lists<<<blocks, kThreads>>>(d_postings, d_start, d_bounds);
    const int rounds = 200;
    EXPECT_OK(cudaEventRecord(t0));
    for (int i = 0; i < rounds; ++i) bound_lists<<<blocks, kThreads>>>(d_postings, d_start, d_bounds);
    EXPECT_OK(cudaEventRecord(t1));
    EXPECT_OK(cudaEventSynchronize(t1));
    EXPECT_OK(cudaGetLastError());
    float ms;
    EXPECT_OK(cudaEventElapsedTime(&ms, t0, t1));

    std::vector<Bound> bounds(kLists);
    EXPECT_OK(cudaMemcpy(bounds.data(), d_bounds, kLists * sizeof(Bound), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int list = 0; list < kLists; list += 37) {
        float top = 0.f;
        double sum = 0.0;
        for (uint32_t i = start[list]; i < start[list + 1]; ++i) {
            const float v = impact(posting_at(i));
            top = std::max(top, v);
            sum += v;
        }
        if (!(std::fabs(top - bounds[list].top) < 1e-5f) || !(std::fabs(sum - bounds[list].sum) < 1e-4 * sum)) ++bad;
    }
    printf("postings: %u, bad lists: %d\n", total, bad);
    printf("us_per_iteration: %.3f\n", ms * 1e3f / rounds);
    return bad ? 1 : 0;
}
