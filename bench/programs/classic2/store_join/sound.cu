// SPDX-License-Identifier: Apache-2.0
// Probe side of a hash join: for each fact row, look its key up in a large open-addressing table of the dimension and add up the matching payloads.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr uint32_t kSlots = 1u << 26;           // 8 bytes each: 512 MB
constexpr uint32_t kBuildRows = 1u << 24;       // a quarter full
constexpr uint32_t kProbeRows = 1u << 24;
constexpr int kThreads = 256;
constexpr int kPerThread = 8;
constexpr uint32_t kEmpty = 0xffffffffu;

__host__ __device__ inline uint32_t finalise(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    x ^= x >> 16;
    return x;
}

// Dimension keys are the even numbers below 2 * kBuildRows; half of the facts have no match.
__host__ __device__ inline uint32_t build_key(uint32_t row) { return 2u * row; }
__host__ __device__ inline uint32_t payload_of(uint32_t key) { return (key * 2654435761u) >> 8; }
__host__ __device__ inline uint32_t probe_key(uint32_t row)
{
    return finalise(row * 3u + 1u) & (2u * kBuildRows - 1u);
}

__device__ inline uint32_t home_slot(uint32_t key) { return finalise(key ^ 0x5bd1e995u) & (kSlots - 1); }

__global__ void make_probe(uint32_t* keys)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < kProbeRows) keys[row] = probe_key(row);
}

__global__ void build_table(unsigned long long* table)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= kBuildRows) return;
    const uint32_t key = build_key(row);
    const unsigned long long entry = (unsigned long long)payload_of(key) << 32 | key;
    const unsigned long long empty = ~0ull;
    uint32_t slot = home_slot(key);
    while (atomicCAS(&table[slot], empty, entry) != empty) slot = (slot + 1) & (kSlots - 1);
}

__global__ void __launch_bounds__(kThreads)
probe_join(const uint2* __restrict__ table, const uint4* __restrict__ keys,
           unsigned long long* __restrict__ total)
{
    __shared__ unsigned long long warp_sums[kThreads / 32];
    const uint32_t base = blockIdx.x * (kThreads * kPerThread / 4) + threadIdx.x;

    uint32_t key[kPerThread];
#pragma unroll
    for (int k = 0; k < kPerThread / 4; ++k) {
        const uint4 q = __ldcs(&keys[base + k * kThreads]);
        key[4 * k + 0] = q.x;
        key[4 * k + 1] = q.y;
        key[4 * k + 2] = q.z;
        key[4 * k + 3] = q.w;
    }

    // All the home slots of a thread's rows are requested before any is looked at.
    uint32_t slot[kPerThread];
    uint2 entry[kPerThread];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
        slot[k] = home_slot(key[k]);
        entry[k] = __ldg(&table[slot[k]]);
    }

    unsigned long long sum = 0;
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
        uint2 e = entry[k];
        // Collisions are short; the next slot is mostly in the sector already fetched.
        while (e.x != key[k] && e.x != kEmpty) {
            slot[k] = (slot[k] + 1) & (kSlots - 1);
            e = __ldg(&table[slot[k]]);
        }
        if (e.x == key[k]) sum += e.y;
    }

    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < kThreads / 32; ++w) sum += warp_sums[w];
        atomicAdd(total, sum);
    }
}

int main()
{
    unsigned long long *table, *total;
    uint32_t* keys;
    CHECK(cudaMalloc(&table, sizeof(*table) * (size_t)kSlots));
    CHECK(cudaMalloc(&keys, sizeof(*keys) * (size_t)kProbeRows));
    CHECK(cudaMalloc(&total, sizeof(*total)));
    CHECK(cudaMemset(table, 0xff, sizeof(*table) * (size_t)kSlots));
    make_probe<<<kProbeRows / 256, 256>>>(keys);
    build_table<<<kBuildRows / 256, 256>>>(table);
    CHECK(cudaGetLastError());

    const int blocks = kProbeRows / (kThreads * kPerThread);
    auto join = [&] {
        CHECK(cudaMemsetAsync(total, 0, sizeof(*total)));
        probe_join<<<blocks, kThreads>>>((const uint2*)table, (const uint4*)keys, total);
    };
    join();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    const int iterations = 60;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it) join();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0.0f;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    unsigned long long got = 0, want = 0;
    CHECK(cudaMemcpy(&got, total, sizeof(got), cudaMemcpyDeviceToHost));
    for (uint32_t row = 0; row < kProbeRows; ++row) {
        const uint32_t key = probe_key(row);
        if (key % 2 == 0) want += payload_of(key);
    }
    CHECK(cudaFree(table));
    CHECK(cudaFree(keys));
    CHECK(cudaFree(total));
    if (got != want) {
        std::fprintf(stderr, "sum %llu, expected %llu\n", got, want);
        return 1;
    }
    std::printf("ok\n");
    return 0;
}
