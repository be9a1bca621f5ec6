// SPDX-License-Identifier: Apache-2.0
// Deduplication store: a 32-bit digest of every 64-byte record.  Some warps of a block bring the next tile of records to shared memory while the others digest the present one.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kTile = 448;                   // records of a tile
constexpr int kTiles = 132 * 2 * 16;
constexpr int kRecords = kTile * kTiles;
constexpr int kQuads = 4;                    // 16-byte quads of a record
constexpr int kPitch = kQuads + 1;           // quads of a record in shared memory
constexpr int kPasses = 6;

constexpr int kWarps = 8;
constexpr int kFetchWarps = 6;
constexpr int kDigestWarps = kWarps - kFetchWarps;
constexpr int kSharedBytes = 2 * kTile * kPitch * (int)sizeof(uint4);

__host__ __device__ inline uint32_t avalanche(uint32_t h)
{
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    h ^= h >> 13;
    h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

__host__ __device__ inline uint32_t record_word(uint32_t record, uint32_t word)
{
    return (record * 16u + word) * 0x9e3779b9u ^ (record >> 7);
}

__global__ void make_records(uint32_t* out)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (uint32_t)kRecords * 16u) out[i] = record_word(i / 16, i % 16);
}

// Brings one tile to shared memory; `t` counts the threads of the fetching warps.
__device__ inline void fetch_tile(uint4* dst, const uint4* __restrict__ records, int tile, int t)
{
    const uint4* src = records + (size_t)tile * kTile * kQuads;
    for (int i = t; i < kTile * kQuads; i += kFetchWarps * 32)
        __pipeline_memcpy_async(dst + (i / kQuads) * kPitch + i % kQuads, src + i, sizeof(uint4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
}

__device__ inline uint32_t digest_record(const uint4* record)
{
    uint4 q[kQuads];
#pragma unroll
    for (int k = 0; k < kQuads; ++k) q[k] = record[k];
    uint32_t h = 0x12345678u;
#pragma unroll 1
    for (int pass = 0; pass < kPasses; ++pass) {
#pragma unroll
        for (int k = 0; k < kQuads; ++k) {
            h = avalanche(h ^ q[k].x);
            h = avalanche(h ^ q[k].y);
            h = avalanche(h ^ q[k].z);
            h = avalanche(h ^ q[k].w);
        }
    }
    return h;
}

__global__ void __launch_bounds__(kWarps * 32)
digest_records(const uint4* __restrict__ records, uint32_t* __restrict__ digest)
{
    extern __shared__ uint4 tiles[];
    const int warp = threadIdx.x / 32;
    const bool fetching = warp < kFetchWarps;
    const int t = fetching ? threadIdx.x : threadIdx.x - kFetchWarps * 32;

    if (fetching) fetch_tile(tiles, records, blockIdx.x, t);
    __syncthreads();

    int side = 0;
    for (int tile = blockIdx.x; tile < kTiles; tile += gridDim.x) {
        if (fetching) {
            const int next = tile + gridDim.x;
            if (next < kTiles) fetch_tile(tiles + (side ^ 1) * kTile * kPitch, records, next, t);
        } else {
            const uint4* present = tiles + side * kTile * kPitch;
            for (int r = t; r < kTile; r += kDigestWarps * 32)
                digest[(size_t)tile * kTile + r] = digest_record(present + r * kPitch);
        }
        __syncthreads();
        side ^= 1;
    }
}

static bool verify(const std::vector<uint32_t>& digest)
{
    for (uint32_t n = 0; n < 8192; ++n) {
        const uint32_t r = (uint32_t)((uint64_t)n * 2654435761ull % kRecords);
        uint32_t h = 0x12345678u;
        for (int pass = 0; pass < kPasses; ++pass)
            for (uint32_t w = 0; w < 16; ++w) h = avalanche(h ^ record_word(r, w));
        if (digest[r] != h) {
            std::fprintf(stderr, "record %u: %08x, expected %08x\n", r, digest[r], h);
            return false;
        }
    }
    return true;
}

int main()
{
    uint4* records;
    uint32_t* digest;
    CHECK(cudaMalloc(&records, (size_t)kRecords * 64));
    CHECK(cudaMalloc(&digest, sizeof(uint32_t) * (size_t)kRecords));
    make_records<<<kRecords * 16 / 256, 256>>>((uint32_t*)records);
    CHECK(cudaGetLastError());

    int device = 0, sms = 0;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CHECK(cudaFuncSetAttribute(digest_records, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kSharedBytes));
    const int blocks = 2 * sms;

    digest_records<<<blocks, kWarps * 32, kSharedBytes>>>(records, digest);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    const int iterations = 100;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it)
        digest_records<<<blocks, kWarps * 32, kSharedBytes>>>(records, digest);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0.0f;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<uint32_t> host(kRecords);
    CHECK(cudaMemcpy(host.data(), digest, sizeof(uint32_t) * (size_t)kRecords, cudaMemcpyDeviceToHost));
    const bool ok = verify(host);
    CHECK(cudaFree(records));
    CHECK(cudaFree(digest));
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
