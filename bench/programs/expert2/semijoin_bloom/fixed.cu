// SPDX-License-Identifier: Apache-2.0
// Semi-join of a fact column with a filtered dimension.  The dimension's keys are in a Bloom filter that fits in shared memory; surviving fact keys are
// appended to the segment's output with one shared-memory atomic a warp.  The
// filter has the size that the optimiser asked for, in bits.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(2); } } while (0)

constexpr int PROBES = 6, THREADS = 512;
constexpr uint32_t SEGMENT = 16384, SEGMENTS = 2048;   // fact keys a segment
constexpr uint32_t FACTS = SEGMENT * SEGMENTS;
constexpr uint32_t DIM_KEYS = 60000;

struct Filter { const uint32_t* words; uint32_t bits; };

__host__ __device__ __forceinline__ uint32_t mix(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}

// Maps a 64-bit hash to a position in [0, bits).
__host__ __device__ __forceinline__ uint32_t bit_position(uint64_t hash, uint32_t bits) {
    return uint32_t(((hash >> 32) * bits) >> 32);
}

// Double hashing: the i-th probe is h1 + i * h2, in 64 bits.
struct ProbeSequence {
    uint64_t h, step;
    __host__ __device__ __forceinline__ explicit ProbeSequence(uint32_t key) {
        const uint32_t a = mix(key), b = mix(key ^ 0x9e3779b9u);
        h = uint64_t(a) << 32 | b;
        step = (uint64_t(b ^ 0x5bd1e995u) << 32 | a) | 1u;
    }
    __host__ __device__ __forceinline__ uint32_t next(uint32_t bits) {
        const uint32_t pos = bit_position(h, bits);
        h += step;
        return pos;
    }
};

__device__ __forceinline__ bool may_contain(const uint32_t* words, uint32_t bits, uint32_t key) {
    ProbeSequence seq(key);
    uint32_t all = 1;
#pragma unroll
    for (int i = 0; i < PROBES; ++i) {
        const uint32_t pos = seq.next(bits);
        all &= words[pos >> 5] >> (pos & 31);
    }
    return all & 1;
}

// Appends the keys of the lanes that keep theirs.
__device__ __forceinline__ void append(bool keep, uint32_t key, uint32_t* out, unsigned* cursor, int lane) {
    const unsigned mask = __ballot_sync(~0u, keep);
    unsigned at = 0;
    if (lane == 0 && mask) at = atomicAdd(cursor, unsigned(__popc(mask)));
    at = __shfl_sync(~0u, at, 0);
    if (keep) out[at + __popc(mask & ((1u << lane) - 1))] = key;
}

__global__ void __launch_bounds__(THREADS, 2)
semi_join(const uint32_t* __restrict__ facts, Filter filter, uint32_t* __restrict__ out, unsigned* __restrict__ out_count) {
    extern __shared__ uint32_t words[];
    __shared__ unsigned cursor;
    const int lane = threadIdx.x & 31;
    const uint32_t bits = filter.bits;
    for (uint32_t i = threadIdx.x; i < (bits + 31) / 32; i += THREADS) words[i] = filter.words[i];

    for (uint32_t seg = blockIdx.x; seg < SEGMENTS; seg += gridDim.x) {
        if (threadIdx.x == 0) cursor = 0;
        __syncthreads();
        const uint4* src = reinterpret_cast<const uint4*>(facts + size_t(seg) * SEGMENT);
        uint32_t* dst = out + size_t(seg) * SEGMENT;
        uint4 next = __ldcs(src + threadIdx.x);
        for (uint32_t v = threadIdx.x; v < SEGMENT / 4; v += THREADS) {
            const uint4 k = next;
            if (v + THREADS < SEGMENT / 4) next = __ldcs(src + v + THREADS);
            append(may_contain(words, bits, k.x), k.x, dst, &cursor, lane);
            append(may_contain(words, bits, k.y), k.y, dst, &cursor, lane);
            append(may_contain(words, bits, k.z), k.z, dst, &cursor, lane);
            append(may_contain(words, bits, k.w), k.w, dst, &cursor, lane);
        }
        __syncthreads();
        if (threadIdx.x == 0) out_count[seg] = cursor;
    }
}

__host__ __device__ inline uint32_t dimension_key(uint32_t i) { return mix(i * 2u + 1u); }
__host__ __device__ inline uint32_t fact_key(uint32_t i) {
    const uint32_t r = mix(i ^ 0x2545f491u);
    return r % 10u == 0 ? dimension_key((r / 10u) % DIM_KEYS) : mix(r + 0x1234u);
}
__global__ void make_facts(uint32_t* facts) {
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < FACTS; i += gridDim.x * blockDim.x) facts[i] = fact_key(i);
}

int main(int argc, char** argv) {
    const uint32_t bits = argc > 1 ? uint32_t(atoi(argv[1])) : 700001u;   // at most 786432
    std::vector<uint32_t> filter((bits + 31) / 32, 0u);
    for (uint32_t i = 0; i < DIM_KEYS; ++i) {
        ProbeSequence seq(dimension_key(i));
        for (int p = 0; p < PROBES; ++p) {
            const uint32_t pos = seq.next(bits);
            filter[pos >> 5] |= 1u << (pos & 31);
        }
    }
    uint32_t *facts, *dfilter, *out; unsigned* out_count;
    CUDA_CHECK(cudaMalloc(&facts, size_t(FACTS) * 4));
    CUDA_CHECK(cudaMalloc(&out, size_t(FACTS) * 4));
    CUDA_CHECK(cudaMalloc(&out_count, SEGMENTS * 4));
    CUDA_CHECK(cudaMalloc(&dfilter, filter.size() * 4));
    CUDA_CHECK(cudaMemcpy(dfilter, filter.data(), filter.size() * 4, cudaMemcpyHostToDevice));
    make_facts<<<2112, 256>>>(facts);
    const int smem = int(filter.size() * 4);
    CUDA_CHECK(cudaFuncSetAttribute(semi_join, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    int sms = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));

    const Filter f = {dfilter, bits};
    semi_join<<<2 * sms, THREADS, smem>>>(facts, f, out, out_count);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CUDA_CHECK(cudaEventCreate(&t0));
    CUDA_CHECK(cudaEventCreate(&t1));
    const int loops = 60;
    CUDA_CHECK(cudaEventRecord(t0));
    for (int i = 0; i < loops; ++i) semi_join<<<2 * sms, THREADS, smem>>>(facts, f, out, out_count);
    CUDA_CHECK(cudaEventRecord(t1));
    CUDA_CHECK(cudaEventSynchronize(t1));
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / loops);

    // Counts, key sums and key XORs of sampled segments.
    std::vector<unsigned> count(SEGMENTS);
    CUDA_CHECK(cudaMemcpy(count.data(), out_count, SEGMENTS * 4, cudaMemcpyDeviceToHost));
    std::vector<uint32_t> kept(SEGMENT);
    int bad = 0;
    for (uint32_t seg = 3; seg < SEGMENTS; seg += 37) {
        uint32_t n = 0, sum = 0, parity = 0, gsum = 0, gparity = 0;
        for (uint32_t i = seg * SEGMENT; i < (seg + 1) * SEGMENT; ++i) {
            const uint32_t key = fact_key(i);
            ProbeSequence seq(key);
            bool in = true;
            for (int p = 0; p < PROBES && in; ++p) {
                const uint32_t pos = seq.next(bits);
                in = filter[pos >> 5] >> (pos & 31) & 1u;
            }
            if (in) { ++n; sum += key; parity ^= key; }
        }
        if (count[seg] != n) { ++bad; continue; }
        CUDA_CHECK(cudaMemcpy(kept.data(), out + size_t(seg) * SEGMENT, n * 4, cudaMemcpyDeviceToHost));
        for (uint32_t i = 0; i < n; ++i) { gsum += kept[i]; gparity ^= kept[i]; }
        bad += gsum != sum || gparity != parity;
    }
    if (bad) printf("bad segments: %d\n", bad);
    return bad ? 1 : 0;
}
