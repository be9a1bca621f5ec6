// SPDX-License-Identifier: Apache-2.0. MinHash signatures of users' interaction histories, for neighbour search in a
// candidate-generation stage. One block per user, one thread per hash function.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kUsers = 131072;
constexpr int kHistory = 64;      // most recent items per user
constexpr int kHashes = 128;      // signature length
constexpr uint32_t kBuckets = 1u << 20;   // sketch space, a power of two

__host__ __device__ inline uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

__host__ __device__ inline uint32_t history_item(uint32_t user, uint32_t pos)
{
    // users of one cohort share a good part of their items
    uint32_t cohort = user / 32;
    uint32_t r = mix32(user * kHistory + pos);
    return (r & 1) ? mix32(cohort * kHistory + pos + 0x51ed270bU) : r;
}

__global__ void make_histories(uint32_t* items)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (uint32_t)kUsers * kHistory) items[i] = history_item(i / kHistory, i % kHistory);
}

__global__ void __launch_bounds__(kHashes)
minhash_signatures(const uint32_t* __restrict__ items, const uint2* __restrict__ coeff,
                   uint32_t* __restrict__ signatures, uint32_t buckets)
{
    __shared__ __align__(16) uint32_t history[kHistory];
    const uint32_t user = blockIdx.x;
    if (threadIdx.x < kHistory) history[threadIdx.x] = items[user * kHistory + threadIdx.x];
    const uint2 ab = coeff[threadIdx.x];
    __syncthreads();

    uint32_t best = 0xffffffffU;
#pragma unroll 8
    for (int i = 0; i < kHistory; ++i) {
        uint32_t h = ab.x * history[i] + ab.y;
        h ^= h >> 15;
        best = min(best, h & (buckets - 1));   // buckets is a power of two
    }
    signatures[user * kHashes + threadIdx.x] = best;
}

int main()
{
    uint32_t *items, *signatures;
    uint2* coeff;
    CHECK(cudaMalloc(&items, sizeof(uint32_t) * kUsers * kHistory));
    CHECK(cudaMalloc(&signatures, sizeof(uint32_t) * kUsers * kHashes));
    CHECK(cudaMalloc(&coeff, sizeof(uint2) * kHashes));

    std::vector<uint2> h_coeff(kHashes);
    for (int k = 0; k < kHashes; ++k)
        h_coeff[k] = make_uint2(mix32(2 * k + 1) | 1u, mix32(2 * k + 2));
    CHECK(cudaMemcpy(coeff, h_coeff.data(), sizeof(uint2) * kHashes, cudaMemcpyHostToDevice));
    make_histories<<<kUsers * kHistory / 256, 256>>>(items);
    CHECK(cudaGetLastError());

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 2; ++i)
        minhash_signatures<<<kUsers, kHashes>>>(items, coeff, signatures, kBuckets);
    const int iterations = 40;
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < iterations; ++i)
        minhash_signatures<<<kUsers, kHashes>>>(items, coeff, signatures, kBuckets);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<uint32_t> got(kHashes);
    for (int s = 0; s < 200; ++s) {
        uint32_t user = mix32(s + 77) % kUsers;
        CHECK(cudaMemcpy(got.data(), signatures + (size_t)user * kHashes,
                         sizeof(uint32_t) * kHashes, cudaMemcpyDeviceToHost));
        for (int k = 0; k < kHashes; ++k) {
            uint32_t best = 0xffffffffU;
            for (int i = 0; i < kHistory; ++i) {
                uint32_t h = h_coeff[k].x * history_item(user, i) + h_coeff[k].y;
                h ^= h >> 15;
                best = std::min(best, h % kBuckets);
            }
            if (best != got[k]) {
                printf("signature mismatch: user %u hash %d: %u, expected %u\n", user, k, got[k], best);
                return 1;
            }
        }
    }
    CHECK(cudaFree(items));
    CHECK(cudaFree(signatures));
    CHECK(cudaFree(coeff));
    return 0;
}
