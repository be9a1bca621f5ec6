// SPDX-License-Identifier: Apache-2.0
// Column store: answers a batch of range queries (COUNT WHERE low <= value < high) over one integer column.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define DIE_ON_ERROR(e) if ((e) != cudaSuccess) { printf("CUDA failure, line %d\n", __LINE__); return 2; }

constexpr int kBatch = 6;
constexpr int kThreads = 256;

struct Batch {
    uint32_t low[kBatch];
    uint32_t span[kBatch];
};

__host__ __device__ static uint32_t column_value(uint32_t row) {
    uint64_t z = (row + 1ull) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    return (uint32_t)(z >> 37);
}

__global__ void load_column(uint32_t* column, uint32_t rows) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows) column[i] = column_value(i);
}

__device__ __forceinline__ unsigned inside(uint32_t value, uint32_t low, uint32_t span) {
    return value - low < span ? 1u : 0u;
}

__global__ void __launch_bounds__(kThreads)
count_ranges(const uint4* __restrict__ column, uint32_t packs, Batch batch, unsigned long long* __restrict__ counts) {
    const uint32_t first = blockIdx.x * kThreads + threadIdx.x, stride = gridDim.x * kThreads;
    unsigned hits[kBatch] = {};
#pragma unroll
    for (int q = 0; q < kBatch; ++q) {
        for (uint32_t i = first; i < packs; i += stride) {
            const uint4 v = column[i];
            hits[q] += inside(v.x, batch.low[q], batch.span[q]) + inside(v.y, batch.low[q], batch.span[q]) +
                       inside(v.z, batch.low[q], batch.span[q]) + inside(v.w, batch.low[q], batch.span[q]);
        }
    }
    __shared__ unsigned partial[kBatch][kThreads / 32];
#pragma unroll
    for (int q = 0; q < kBatch; ++q) {
        const unsigned sum = __reduce_add_sync(0xffffffffu, hits[q]);
        if (threadIdx.x % 32 == 0) partial[q][threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x < kBatch) {
        unsigned sum = 0;
        for (int w = 0; w < kThreads / 32; ++w) sum += partial[threadIdx.x][w];
        atomicAdd(&counts[threadIdx.x], (unsigned long long)sum);
    }
}

int main() {
    const uint32_t rows = 1u << 26;
    uint32_t* column;
    unsigned long long* counts;
    DIE_ON_ERROR(cudaMalloc(&column, (size_t)rows * 4));
    DIE_ON_ERROR(cudaMalloc(&counts, sizeof(unsigned long long) * kBatch));
    load_column<<<rows / 256, 256>>>(column, rows);

    Batch batch;
    for (int q = 0; q < kBatch; ++q) {
        batch.low[q] = 1000000u * q + 17u;
        batch.span[q] = 9000000u * (q + 1);
    }
    int sms = 0;
    DIE_ON_ERROR(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int grid = sms * 8;

    cudaEvent_t tic, toc;
    DIE_ON_ERROR(cudaEventCreate(&tic));
    DIE_ON_ERROR(cudaEventCreate(&toc));
    const int warm = 5, rounds = 100;
    for (int i = 0; i < warm + rounds; ++i) {
        if (i == warm) DIE_ON_ERROR(cudaEventRecord(tic));
        DIE_ON_ERROR(cudaMemsetAsync(counts, 0, sizeof(unsigned long long) * kBatch));
        count_ranges<<<grid, kThreads>>>((const uint4*)column, rows / 4, batch, counts);
    }
    DIE_ON_ERROR(cudaEventRecord(toc));
    DIE_ON_ERROR(cudaEventSynchronize(toc));
    DIE_ON_ERROR(cudaGetLastError());
    float ms = 0;
    DIE_ON_ERROR(cudaEventElapsedTime(&ms, tic, toc));

    unsigned long long got[kBatch], want[kBatch] = {};
    DIE_ON_ERROR(cudaMemcpy(got, counts, sizeof(got), cudaMemcpyDeviceToHost));
    for (uint32_t r = 0; r < rows; ++r) {
        const uint32_t v = column_value(r);
        for (int q = 0; q < kBatch; ++q) want[q] += v - batch.low[q] < batch.span[q];
    }
    int status = 0;
    for (int q = 0; q < kBatch; ++q) {
        printf("query %d: %llu\n", q, got[q]);
        if (got[q] != want[q]) status = 1;
    }
    printf("us_per_iteration: %.3f\n", ms * 1e3f / rounds);
    return status;
}
