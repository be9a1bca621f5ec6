// SPDX-License-Identifier: Apache-2.0
// 13-mer spectrum of a read set.  An earlier pass has split the canonical k-mers into 32 partitions by their leading bits; this pass counts them in the
// direct-addressed table of 2^26 counters.  A block counts one batch of a
// partition, four k-mers a load, with fire-and-forget reductions.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#define CHECK_CUDA(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s (line %d)\n", cudaGetErrorString(e_), __LINE__); exit(2); } } while (0)

constexpr int KMER_BITS = 26, PART_BITS = 5, SUFFIX_BITS = KMER_BITS - PART_BITS;
constexpr int PARTITIONS = 1 << PART_BITS;
constexpr uint32_t PER_PARTITION = 1u << 21;   // k-mers a partition
constexpr int THREADS = 256, VECS_PER_THREAD = 4;
constexpr uint32_t BATCH = THREADS * VECS_PER_THREAD * 4;
constexpr uint32_t BATCHES = PER_PARTITION / BATCH;
constexpr uint32_t TOTAL = PARTITIONS * PER_PARTITION;

struct Batch { uint32_t partition, index; };

// Which batch of which partition a block counts.
__device__ __forceinline__ Batch batch_of_block(uint32_t b) {
    return {b / BATCHES, b % BATCHES};
}

__device__ __forceinline__ void count_one(uint32_t* counts, uint32_t kmer) {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(counts + kmer) : "memory");
}

__global__ void __launch_bounds__(THREADS)
count_kmers(const uint32_t* __restrict__ kmers, uint32_t* __restrict__ counts) {
    const Batch batch = batch_of_block(blockIdx.x);
    const uint4* src = reinterpret_cast<const uint4*>(kmers + size_t(batch.partition) * PER_PARTITION + size_t(batch.index) * BATCH);
    uint4 v[VECS_PER_THREAD];
#pragma unroll
    for (int i = 0; i < VECS_PER_THREAD; ++i) v[i] = __ldcs(src + i * THREADS + threadIdx.x);
#pragma unroll
    for (int i = 0; i < VECS_PER_THREAD; ++i) {
        count_one(counts, v[i].x);
        count_one(counts, v[i].y);
        count_one(counts, v[i].z);
        count_one(counts, v[i].w);
    }
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
// The i-th k-mer of the partitioned read set; one in sixteen is from a repeat family.
__host__ __device__ inline uint32_t kmer_at(uint32_t i) {
    const uint32_t part = i / PER_PARTITION, h = mix32(i + 0x1234567u);
    uint32_t suffix = h >> (32 - SUFFIX_BITS);
    if ((h & 15u) == 0) suffix = (suffix & 0xffffu) * 29u & ((1u << SUFFIX_BITS) - 1u);
    return part << SUFFIX_BITS | suffix;
}
__global__ void make_kmers(uint32_t* kmers) {
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < TOTAL; i += gridDim.x * blockDim.x) kmers[i] = kmer_at(i);
}

// The abundance histogram that assemblers look at, from the finished table.
__global__ void abundance(const uint32_t* counts, uint32_t scale, unsigned long long* total, uint32_t* distinct) {
    unsigned long long sum = 0;
    uint32_t seen = 0;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (1u << KMER_BITS); i += gridDim.x * blockDim.x) {
        sum += counts[i] / scale;
        seen += counts[i] != 0;
    }
    for (int o = 16; o; o >>= 1) {
        sum += __shfl_xor_sync(~0u, sum, o);
        seen += __shfl_xor_sync(~0u, seen, o);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(total, sum);
        atomicAdd(distinct, seen);
    }
}

int main() {
    uint32_t *kmers, *counts, *distinct;
    unsigned long long* total;
    CHECK_CUDA(cudaMalloc(&kmers, size_t(TOTAL) * 4));
    CHECK_CUDA(cudaMalloc(&counts, sizeof(uint32_t) << KMER_BITS));
    CHECK_CUDA(cudaMalloc(&distinct, 4));
    CHECK_CUDA(cudaMalloc(&total, 8));
    CHECK_CUDA(cudaMemset(counts, 0, sizeof(uint32_t) << KMER_BITS));
    CHECK_CUDA(cudaMemset(distinct, 0, 4));
    CHECK_CUDA(cudaMemset(total, 0, 8));
    make_kmers<<<4096, 256>>>(kmers);

    const uint32_t blocks = PARTITIONS * BATCHES;
    count_kmers<<<blocks, THREADS>>>(kmers, counts);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaDeviceSynchronize());

    // Every further pass stands for one more lane of the sequencing run.
    const int lanes = 40;
    cudaEvent_t start, stop;
    CHECK_CUDA(cudaEventCreate(&start));
    CHECK_CUDA(cudaEventCreate(&stop));
    CHECK_CUDA(cudaEventRecord(start));
    for (int i = 0; i < lanes; ++i) count_kmers<<<blocks, THREADS>>>(kmers, counts);
    CHECK_CUDA(cudaEventRecord(stop));
    CHECK_CUDA(cudaEventSynchronize(stop));
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.2f\n", ms * 1e3f / lanes);

    abundance<<<1056, 256>>>(counts, lanes + 1, total, distinct);
    unsigned long long htotal = 0;
    uint32_t hdistinct = 0;
    CHECK_CUDA(cudaMemcpy(&htotal, total, 8, cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(&hdistinct, distinct, 4, cudaMemcpyDeviceToHost));
    int wrong = htotal != TOTAL;

    // Exact counts of every 1024th counter, from two partitions, on the host.
    for (uint32_t part : {3u, 26u}) {
        std::unordered_map<uint32_t, uint32_t> want;
        for (uint32_t i = part * PER_PARTITION; i < (part + 1) * PER_PARTITION; ++i) {
            const uint32_t k = kmer_at(i);
            if ((k & 1023u) == 7u) ++want[k];
        }
        std::vector<uint32_t> got(size_t(1) << SUFFIX_BITS);
        CHECK_CUDA(cudaMemcpy(got.data(), counts + (size_t(part) << SUFFIX_BITS), got.size() * 4, cudaMemcpyDeviceToHost));
        for (uint32_t s = 7; s < got.size(); s += 1024) {
            auto it = want.find(part << SUFFIX_BITS | s);
            const uint32_t n = it == want.end() ? 0 : it->second;
            wrong += got[s] != n * uint32_t(lanes + 1);
        }
    }
    printf("distinct k-mers: %u\n", hdistinct);
    if (wrong) printf("wrong: %d\n", wrong);
    return wrong ? 1 : 0;
}
