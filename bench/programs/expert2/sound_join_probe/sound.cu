// SPDX-License-Identifier: Apache-2.0
// Probe side of a hash join: orders look up their customer in an open-addressing table of 2^26 slots (512 MiB, half full).  Four lookups a thread are in
// flight together; collisions walk on linearly.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CUDA_TRY(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s (line %d)\n", cudaGetErrorString(e_), __LINE__); exit(2); } } while (0)

constexpr uint32_t SLOT_BITS = 26, SLOTS = 1u << SLOT_BITS;
constexpr uint32_t CUSTOMERS = 1u << 25, ORDERS = 1u << 25;
constexpr uint64_t FREE_SLOT = ~0ull;
constexpr int THREADS = 256;

// Bijective, so that customer numbers are distinct.
__host__ __device__ __forceinline__ uint32_t customer_key(uint32_t i) {
    i ^= i >> 16; i *= 0x7feb352du; i ^= i >> 15; i *= 0x846ca68bu; i ^= i >> 16;
    return i;
}
__host__ __device__ __forceinline__ uint32_t discount_of(uint32_t i) { return (i * 7u + 3u) & 1023u; }
// Half of the orders are from customers that are not in the table.
__host__ __device__ __forceinline__ uint32_t order_customer(uint32_t o) { return (o * 0x01000193u + 977u) & (2u * CUSTOMERS - 1u); }
__device__ __forceinline__ uint32_t home_slot(uint32_t key) { return (key * 0x9e3779b1u) >> (32 - SLOT_BITS); }

__global__ void build(unsigned long long* table) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= CUSTOMERS) return;
    const uint32_t key = customer_key(i);
    const unsigned long long entry = (unsigned long long)key << 32 | discount_of(i);
    for (uint32_t s = home_slot(key);; s = (s + 1) & (SLOTS - 1))
        if (atomicCAS(&table[s], FREE_SLOT, entry) == FREE_SLOT) return;
}
__global__ void make_orders(uint32_t* orders) {
    const uint32_t o = blockIdx.x * blockDim.x + threadIdx.x;
    if (o < ORDERS) orders[o] = customer_key(order_customer(o));
}

// Follows a chain from an entry already read.
__device__ __forceinline__ uint32_t resolve(const uint64_t* table, uint32_t key, uint32_t slot, uint64_t entry, uint32_t& matches) {
    while (entry != FREE_SLOT) {
        if (uint32_t(entry >> 32) == key) {
            ++matches;
            return uint32_t(entry);
        }
        slot = (slot + 1) & (SLOTS - 1);
        entry = __ldg(table + slot);
    }
    return 0;
}

__global__ void __launch_bounds__(THREADS)
probe_orders(const uint4* __restrict__ orders, const uint64_t* __restrict__ table, unsigned long long* __restrict__ result) {
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    const uint4 q = __ldcs(orders + i);
    const uint32_t key[4] = {q.x, q.y, q.z, q.w};
    uint64_t entry[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) entry[k] = __ldg(table + home_slot(key[k]));
    uint32_t discounts = 0, matches = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) discounts += resolve(table, key[k], home_slot(key[k]), entry[k], matches);

    __shared__ uint32_t part[2][THREADS / 32];
    discounts = __reduce_add_sync(~0u, discounts);
    matches = __reduce_add_sync(~0u, matches);
    if ((threadIdx.x & 31) == 0) {
        part[0][threadIdx.x >> 5] = discounts;
        part[1][threadIdx.x >> 5] = matches;
    }
    __syncthreads();
    if (threadIdx.x < 2) {
        unsigned long long sum = 0;
        for (int w = 0; w < THREADS / 32; ++w) sum += part[threadIdx.x][w];
        atomicAdd(&result[threadIdx.x], sum);
    }
}

int main() {
    unsigned long long *table, *result; uint32_t* orders;
    CUDA_TRY(cudaMalloc(&table, size_t(SLOTS) * 8));
    CUDA_TRY(cudaMalloc(&orders, size_t(ORDERS) * 4));
    CUDA_TRY(cudaMalloc(&result, 16));
    CUDA_TRY(cudaMemset(table, 0xff, size_t(SLOTS) * 8));
    CUDA_TRY(cudaMemset(result, 0, 16));
    build<<<CUSTOMERS / 256, 256>>>(table);
    make_orders<<<ORDERS / 256, 256>>>(orders);

    auto probe = [&] {
        probe_orders<<<ORDERS / 4 / THREADS, THREADS>>>(reinterpret_cast<const uint4*>(orders), reinterpret_cast<const uint64_t*>(table), result);
    };
    probe();
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CUDA_TRY(cudaEventCreate(&t0));
    CUDA_TRY(cudaEventCreate(&t1));
    const int rounds = 40;
    CUDA_TRY(cudaEventRecord(t0));
    for (int r = 0; r < rounds; ++r) probe();
    CUDA_TRY(cudaEventRecord(t1));
    CUDA_TRY(cudaEventSynchronize(t1));
    float ms = 0;
    CUDA_TRY(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / rounds);

    unsigned long long got[2], discounts = 0, matches = 0;
    CUDA_TRY(cudaMemcpy(got, result, 16, cudaMemcpyDeviceToHost));
    for (uint32_t o = 0; o < ORDERS; ++o) {
        const uint32_t c = order_customer(o);
        if (c < CUSTOMERS) {
            ++matches;
            discounts += discount_of(c);
        }
    }
    const bool ok = got[0] == discounts * (rounds + 1) && got[1] == matches * (rounds + 1);
    printf("matches: %llu of %u orders%s\n", matches, ORDERS, ok ? "" : " MISMATCH");
    return ok ? 0 : 1;
}
