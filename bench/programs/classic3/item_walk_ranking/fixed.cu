// SPDX-License-Identifier: Apache-2.0. Personalised item ranking by random walk with restart on an item-item
// co-occurrence graph (fixed out-degree, column-major neighbour lists).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <utility>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kItems = 1 << 17;
constexpr int kDegree = 16;
constexpr int kMaxSweeps = 32;
constexpr float kDamping = 0.9f;
constexpr float kTolerance = 1e-6f;   // of the total mass
constexpr int kBlock = 256;

static uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

__global__ void restart_walk(const float* __restrict__ seed, float* __restrict__ rank, float* residual)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    rank[i] = seed[i];
    if (i < kMaxSweeps) residual[i] = 0.0f;
}

__global__ void walk_sweep(const int* __restrict__ neighbour, const float* __restrict__ weight,
                           const float* __restrict__ seed, const float* __restrict__ rank,
                           float* __restrict__ next, float* residual)
{
    __shared__ float partial[kBlock / 32];
    int i = blockIdx.x * kBlock + threadIdx.x;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kDegree; ++k)
        sum += weight[k * kItems + i] * rank[neighbour[k * kItems + i]];
    float value = (1.0f - kDamping) * seed[i] + kDamping * sum;
    next[i] = value;

    float change = fabsf(value - rank[i]);
    for (int o = 16; o > 0; o >>= 1) change += __shfl_down_sync(0xffffffffu, change, o);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = change;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < kBlock / 32; ++w) change += partial[w];
        atomicAdd(residual, change);
    }
}

// Walks until the ranks settle; returns the number of sweeps made.
static int rank_items(const int* neighbour, const float* weight, const float* seed,
                      float*& rank, float*& next, float* residual)
{
    restart_walk<<<kItems / kBlock, kBlock>>>(seed, rank, residual);
    int sweep = 0;
    float change = 0.0f;
    while (sweep < kMaxSweeps) {
        walk_sweep<<<kItems / kBlock, kBlock>>>(neighbour, weight, seed, rank, next, residual + sweep);
        std::swap(rank, next);
        ++sweep;
        if (sweep % 8 == 0) {
            cudaMemcpy(&change, residual + sweep - 1, sizeof(float), cudaMemcpyDeviceToHost);
            if (change < kTolerance) break;
        }
    }
    return sweep;
}

int main()
{
    std::vector<int> h_nb((size_t)kItems * kDegree);
    std::vector<float> h_w((size_t)kItems * kDegree), h_seed(kItems, 0.0f);
    for (int k = 0; k < kDegree; ++k)
        for (int i = 0; i < kItems; ++i) {
            uint32_t r = mix32((uint32_t)(k * kItems + i));
            // half of the links stay within the item's category
            h_nb[(size_t)k * kItems + i] = (r & 1) ? (i / 1024) * 1024 + (int)((r >> 1) & 1023) : (int)((r >> 1) % kItems);
            h_w[(size_t)k * kItems + i] = 1.0f / kDegree;
        }
    for (int s = 0; s < 64; ++s) h_seed[mix32(s + 9001) % kItems] += 1.0f / 64;

    int* neighbour;
    float *weight, *seed, *rank, *next, *residual;
    CHECK(cudaMalloc(&neighbour, sizeof(int) * h_nb.size()));
    CHECK(cudaMalloc(&weight, sizeof(float) * h_w.size()));
    CHECK(cudaMalloc(&seed, sizeof(float) * kItems));
    CHECK(cudaMalloc(&rank, sizeof(float) * kItems));
    CHECK(cudaMalloc(&next, sizeof(float) * kItems));
    CHECK(cudaMalloc(&residual, sizeof(float) * kMaxSweeps));
    CHECK(cudaMemcpy(neighbour, h_nb.data(), sizeof(int) * h_nb.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(weight, h_w.data(), sizeof(float) * h_w.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(seed, h_seed.data(), sizeof(float) * kItems, cudaMemcpyHostToDevice));

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    int sweeps = 0;
    for (int i = 0; i < 2; ++i) sweeps = rank_items(neighbour, weight, seed, rank, next, residual);
    const int iterations = 40;
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < iterations; ++i) sweeps = rank_items(neighbour, weight, seed, rank, next, residual);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<float> got(kItems), want(h_seed), tmp(kItems);
    CHECK(cudaMemcpy(got.data(), rank, sizeof(float) * kItems, cudaMemcpyDeviceToHost));
    for (int s = 0; s < sweeps; ++s) {
        for (int i = 0; i < kItems; ++i) {
            float sum = 0.0f;
            for (int k = 0; k < kDegree; ++k)
                sum += h_w[(size_t)k * kItems + i] * want[h_nb[(size_t)k * kItems + i]];
            tmp[i] = (1.0f - kDamping) * h_seed[i] + kDamping * sum;
        }
        std::swap(want, tmp);
    }
    for (int i = 0; i < kItems; ++i)
        if (!(std::fabs(got[i] - want[i]) <= 1e-8f + 1e-3f * want[i])) {
            printf("rank mismatch at item %d: %g, expected %g\n", i, got[i], want[i]);
            return 1;
        }
    return 0;
}
