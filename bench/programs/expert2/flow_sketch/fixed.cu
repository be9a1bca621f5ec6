// SPDX-License-Identifier: Apache-2.0
// Traffic sketch of a capture: pages of 128 flow records (16 bytes each) are folded into per-block byte-count sketches in shared memory; every page also
// gets a digest.  Warps of a block draw pages from the block's cursor, since
// pages with many fragments take longer than others.
#include <cuda/atomic>
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(x) do { cudaError_t s_ = (x); if (s_ != cudaSuccess) { \
    fprintf(stderr, "cuda error %s, line %d\n", cudaGetErrorString(s_), __LINE__); exit(2); } } while (0)

constexpr int RECORDS_PER_PAGE = 128;   // one page = 2 KiB
constexpr int BLOCKS = 264, PAGES_PER_BLOCK = 512, THREADS = 256;
constexpr int PAGES = BLOCKS * PAGES_PER_BLOCK;
constexpr int CELLS = 16384;            // counters of a sketch, 64 KiB
constexpr uint32_t FRAGMENT = 0x80000000u;

struct FlowRecord { uint32_t src, dst, ports, bytes; };  // bit 31 of bytes: fragment

using PageCursor = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;

__host__ __device__ inline uint32_t scramble(uint32_t x) {
    x ^= x >> 16; x *= 0x85ebca6bu; x ^= x >> 13; x *= 0xc2b2ae35u; x ^= x >> 16;
    return x;
}
__host__ __device__ inline uint32_t flow_hash(uint32_t src, uint32_t dst, uint32_t ports) {
    return scramble(src ^ scramble(dst + 0x9e3779b9u * ports));
}
__host__ __device__ inline uint32_t record_digest(uint32_t h, uint32_t bytes) { return h * 31u + bytes; }

// Fragments carry the flow of their first packet in a folded form.
__host__ __device__ inline uint32_t refold(uint32_t h, uint32_t ports) {
    for (int i = 0; i < 4; ++i) h = (h << 5 | h >> 27) * 0x01000193u ^ ports;
    return h;
}

__global__ void __launch_bounds__(THREADS, 2)
sketch_pages(const uint4* __restrict__ records, uint32_t* __restrict__ sketches, uint32_t* __restrict__ digests) {
    extern __shared__ uint32_t cells[];
    __shared__ unsigned next_page;
    const int lane = threadIdx.x & 31;

    for (int i = threadIdx.x; i < CELLS; i += THREADS) cells[i] = 0;
    if (threadIdx.x == 0) next_page = 0;
    __syncthreads();

    PageCursor cursor(next_page);
    for (;;) {
        unsigned p = 0;
        if (lane == 0) p = cursor.fetch_add(1u);
        p = __shfl_sync(~0u, p, 0);
        if (p >= PAGES_PER_BLOCK) break;
        const size_t page = size_t(blockIdx.x) * PAGES_PER_BLOCK + p;

        uint4 r[RECORDS_PER_PAGE / 32];
#pragma unroll
        for (int i = 0; i < RECORDS_PER_PAGE / 32; ++i) r[i] = __ldcs(records + page * RECORDS_PER_PAGE + i * 32 + lane);

        uint32_t digest = 0;
#pragma unroll
        for (int i = 0; i < RECORDS_PER_PAGE / 32; ++i) {
            uint32_t h = flow_hash(r[i].x, r[i].y, r[i].z);
            const uint32_t bytes = r[i].w & ~FRAGMENT;
            if (r[i].w & FRAGMENT) h = refold(h, r[i].z);
            atomicAdd(&cells[h % CELLS], bytes);
            digest += record_digest(h, bytes);
        }
        digest = __reduce_add_sync(~0u, digest);
        if (lane == 0) digests[page] = digest;
    }
    __syncthreads();

    uint4* dst = reinterpret_cast<uint4*>(sketches + size_t(blockIdx.x) * CELLS);
    for (int i = threadIdx.x; i < CELLS / 4; i += THREADS) dst[i] = reinterpret_cast<const uint4*>(cells)[i];
}

__host__ __device__ inline FlowRecord make_record(uint32_t i) {
    FlowRecord f;
    f.src = scramble(i * 3u + 1u) & 0x00ffffffu;
    f.dst = scramble(i * 5u + 2u) & 0x0000ffffu;
    f.ports = scramble(i + 3u);
    f.bytes = 40u + (scramble(i ^ 0x5bd1e995u) % 1460u);
    if ((scramble(i / RECORDS_PER_PAGE + 17u) & 7u) == 0 && (i & 3u) == 0) f.bytes |= FRAGMENT;
    return f;
}
__global__ void make_capture(uint4* records) {
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < uint32_t(PAGES) * RECORDS_PER_PAGE; i += gridDim.x * blockDim.x) {
        const FlowRecord f = make_record(i);
        records[i] = make_uint4(f.src, f.dst, f.ports, f.bytes);
    }
}

int main() {
    uint4* records; uint32_t *sketches, *digests;
    MUST(cudaMalloc(&records, size_t(PAGES) * RECORDS_PER_PAGE * sizeof(uint4)));
    MUST(cudaMalloc(&sketches, size_t(BLOCKS) * CELLS * 4));
    MUST(cudaMalloc(&digests, size_t(PAGES) * 4));
    make_capture<<<2112, 256>>>(records);
    MUST(cudaFuncSetAttribute(sketch_pages, cudaFuncAttributeMaxDynamicSharedMemorySize, CELLS * 4));

    sketch_pages<<<BLOCKS, THREADS, CELLS * 4>>>(records, sketches, digests);
    MUST(cudaGetLastError());
    MUST(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    MUST(cudaEventCreate(&a));
    MUST(cudaEventCreate(&b));
    const int rounds = 100;
    MUST(cudaEventRecord(a));
    for (int i = 0; i < rounds; ++i) sketch_pages<<<BLOCKS, THREADS, CELLS * 4>>>(records, sketches, digests);
    MUST(cudaEventRecord(b));
    MUST(cudaEventSynchronize(b));
    float ms = 0.f;
    MUST(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.2f\n", ms * 1e3f / rounds);

    // Whole sketches and digests of a few blocks against the host.
    std::vector<uint32_t> cells(CELLS), want(CELLS), digest(PAGES_PER_BLOCK);
    int errors = 0;
    for (int blk = 0; blk < BLOCKS; blk += 53) {
        MUST(cudaMemcpy(cells.data(), sketches + size_t(blk) * CELLS, CELLS * 4, cudaMemcpyDeviceToHost));
        MUST(cudaMemcpy(digest.data(), digests + size_t(blk) * PAGES_PER_BLOCK, PAGES_PER_BLOCK * 4, cudaMemcpyDeviceToHost));
        std::fill(want.begin(), want.end(), 0u);
        for (int p = 0; p < PAGES_PER_BLOCK; ++p) {
            uint32_t d = 0;
            for (int k = 0; k < RECORDS_PER_PAGE; ++k) {
                const FlowRecord f = make_record((uint32_t(blk) * PAGES_PER_BLOCK + p) * RECORDS_PER_PAGE + k);
                uint32_t h = flow_hash(f.src, f.dst, f.ports);
                if (f.bytes & FRAGMENT) h = refold(h, f.ports);
                want[h % CELLS] += f.bytes & ~FRAGMENT;
                d += record_digest(h, f.bytes & ~FRAGMENT);
            }
            errors += d != digest[p];
        }
        for (int c = 0; c < CELLS; ++c) errors += want[c] != cells[c];
    }
    if (errors) printf("errors: %d\n", errors);
    return errors ? 1 : 0;
}
