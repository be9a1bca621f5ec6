// SPDX-License-Identifier: Apache-2.0
// Read classification: test k-mer hashes against a blocked Bloom filter.
// The filter (512 MB) is cut into slices of 8 MB. An earlier radix pass has already
// grouped the k-mers of a batch by slice, so a work item is a chunk of k-mers that all
// fall into one slice. Every k-mer tests four bits of one 128-bit filter block. The
// result is a bit per k-mer.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int SLICES = 64;
constexpr int SLICE_BITS = 19;                       // 2^19 blocks of 16 bytes: 8 MB
constexpr unsigned SLICE_BLOCKS = 1u << SLICE_BITS;
constexpr int KMERS_PER_SLICE = 1 << 20;
constexpr int THREADS = 256;
constexpr int BATCH = 8;                             // k-mers per thread and chunk
constexpr int CHUNK = THREADS * BATCH;
constexpr int CHUNKS_PER_SLICE = KMERS_PER_SLICE / CHUNK;
constexpr int ITEMS = SLICES * CHUNKS_PER_SLICE;

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ __forceinline__ unsigned block_of(unsigned kmer) { return (kmer * 0x9E3779B1u) >> (32 - SLICE_BITS); }

struct Probe { unsigned b0, b1, b2, b3; };

__device__ __forceinline__ Probe probe_bits(unsigned kmer) {
    const unsigned h = kmer * 0x85EBCA6Bu;
    return { 1u << (h >> 27), 1u << ((h >> 22) & 31), 1u << ((h >> 17) & 31), 1u << ((h >> 12) & 31) };
}

__global__ void make_kmers(unsigned* kmers, size_t n) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) kmers[i] = mix((unsigned)i + 17u);
}

// Every fourth k-mer belongs to the reference set.
__global__ void insert_reference(const unsigned* kmers, unsigned* filter, size_t n) {
    const size_t i = 4 * (blockIdx.x * (size_t)blockDim.x + threadIdx.x);
    if (i >= n) return;
    const unsigned k = kmers[i];
    const size_t slice = i / KMERS_PER_SLICE;
    unsigned* w = filter + 4 * (slice * SLICE_BLOCKS + block_of(k));
    const Probe p = probe_bits(k);
    atomicOr(w + 0, p.b0); atomicOr(w + 1, p.b1); atomicOr(w + 2, p.b2); atomicOr(w + 3, p.b3);
}

__global__ void __launch_bounds__(THREADS, 4)
classify(const unsigned* __restrict__ kmers, const uint4* __restrict__ filter, unsigned* __restrict__ hits) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int item = blockIdx.x; item < ITEMS; item += gridDim.x) {
        const int slice = item % SLICES, chunk = item / SLICES;
        const size_t first = (size_t)slice * KMERS_PER_SLICE + (size_t)chunk * CHUNK;
        const uint4* blocks = filter + (size_t)slice * SLICE_BLOCKS;

        unsigned k[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) k[j] = __ldcs(kmers + first + j * THREADS + threadIdx.x);
        uint4 w[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) w[j] = __ldg(blocks + block_of(k[j]));

        unsigned mine = 0;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const Probe p = probe_bits(k[j]);
            const bool hit = ((w[j].x & p.b0) != 0) & ((w[j].y & p.b1) != 0) & ((w[j].z & p.b2) != 0) & ((w[j].w & p.b3) != 0);
            const unsigned votes = __ballot_sync(0xffffffffu, hit);
            if (lane == j) mine = votes;
        }
        if (lane < BATCH) __stcs(hits + first / 32 + lane * (THREADS / 32) + warp, mine);
    }
}

// One thread per k-mer, against the packed result; also counts reference k-mers missed.
__global__ void check_hits(const unsigned* kmers, const unsigned* filter, const unsigned* hits, size_t n,
                           unsigned* wrong, unsigned* positives) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned h = kmers[i] * 0x85EBCA6Bu;
    const unsigned* w = filter + 4 * ((i / KMERS_PER_SLICE) * SLICE_BLOCKS + block_of(kmers[i]));
    bool in = true;
    for (int b = 0; b < 4; ++b) in = in && ((w[b] >> ((h >> (27 - 5 * b)) & 31)) & 1u);
    const bool got = (hits[i / 32] >> (i % 32)) & 1u;
    if (got != in || (i % 4 == 0 && !got)) atomicAdd(wrong, 1u);
    const unsigned v = __ballot_sync(__activemask(), got);
    if ((i & 31) == 0) atomicAdd(positives, __popc(v));
}

int main() {
    const size_t n = (size_t)SLICES * KMERS_PER_SLICE;
    const size_t filter_bytes = (size_t)SLICES * SLICE_BLOCKS * sizeof(uint4);
    const int iterations = 30;
    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));

    unsigned *kmers, *filter, *hits, *stats;
    CK(cudaMalloc(&kmers, n * sizeof(unsigned)));
    CK(cudaMalloc(&filter, filter_bytes));
    CK(cudaMalloc(&hits, n / 8));
    CK(cudaMalloc(&stats, 2 * sizeof(unsigned)));
    CK(cudaMemset(filter, 0, filter_bytes));
    CK(cudaMemset(hits, 0, n / 8));
    CK(cudaMemset(stats, 0, 2 * sizeof(unsigned)));
    make_kmers<<<(unsigned)(n / 256), 256>>>(kmers, n);
    insert_reference<<<(unsigned)(n / 4 / 256), 256>>>(kmers, filter, n);
    CK(cudaGetLastError());

    const int grid = sms * 4;
    classify<<<grid, THREADS>>>(kmers, reinterpret_cast<const uint4*>(filter), hits);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i)
        classify<<<grid, THREADS>>>(kmers, reinterpret_cast<const uint4*>(filter), hits);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    check_hits<<<(unsigned)(n / 256), 256>>>(kmers, filter, hits, n, stats, stats + 1);
    CK(cudaGetLastError());
    unsigned out[2];
    CK(cudaMemcpy(out, stats, sizeof(out), cudaMemcpyDeviceToHost));
    std::printf("k-mers: %zu positive: %u wrong: %u\n", n, out[1], out[0]);
    const bool ok = out[0] == 0 && out[1] >= n / 4 && out[1] < n / 2;
    return ok ? 0 : 1;
}
