// SPDX-License-Identifier: Apache-2.0
// Query evaluation in a search engine shard: for each query term the impact of all its postings that fall in the live document range is summed (the term's upper bound).
// A posting packs a document number and an 8-bit impact; a list is sorted by document
// and closed by a run of kEnd entries.  One warp walks one term's list.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CHECKED(x)                                                               \
    do {                                                                         \
        cudaError_t err_ = (x);                                                  \
        if (err_ != cudaSuccess) {                                               \
            fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(err_));     \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr int kTerms = 1056;
constexpr int kSlot = 36864;            // entries reserved per list
constexpr int kMinLength = 34000;
constexpr int kMaxLength = 36500;       // the rest of a slot is closed by kEnd
constexpr int kWarpsPerBlock = 8;
constexpr int kPasses = 40;
constexpr uint32_t kEnd = 0xFFFFFFFFu;
constexpr uint32_t kFull = 0xFFFFFFFFu;

__host__ __device__ inline uint32_t murmur(uint32_t h) {
    h ^= h >> 16; h *= 0x85ebca6bu;
    h ^= h >> 13; h *= 0xc2b2ae35u;
    h ^= h >> 16;
    return h;
}

__host__ __device__ inline int listLength(int term) {
    return kMinLength + (int)(murmur(term * 31u + 5u) % (uint32_t)(kMaxLength - kMinLength));
}

// Documents advance by 256 on average, with jitter inside the gap.
__host__ __device__ inline uint32_t posting(int term, int pos) {
    const uint32_t h = murmur((uint32_t)term * kSlot + pos);
    const uint32_t doc = (uint32_t)pos * 256u + (h & 255u);
    return (doc << 8) | ((h >> 8) & 255u);
}

struct LiveRange { uint32_t first, last; };   // documents, inclusive

__global__ void buildIndex(uint32_t* index) {
    const int term = blockIdx.y;
    const int pos = blockIdx.x * blockDim.x + threadIdx.x;
    if (pos < kSlot)
        index[(size_t)term * kSlot + pos] = pos < listLength(term) ? posting(term, pos) : kEnd;
}

__device__ inline uint32_t liveImpact(uint32_t entry, const LiveRange& live) {
    const uint32_t doc = entry >> 8;
    return (doc >= live.first && doc <= live.last) ? (entry & 255u) : 0u;
}

__device__ inline uint32_t warpTotal(uint32_t v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(kFull, v, d);
    return v;
}

__global__ void __launch_bounds__(kWarpsPerBlock * 32)
termBounds(const uint32_t* __restrict__ index, uint32_t* __restrict__ bounds, LiveRange live) {
    const int lane = threadIdx.x & 31;
    const int term = blockIdx.x * kWarpsPerBlock + (threadIdx.x >> 5);
    if (term >= kTerms) return;

    const uint32_t* list = index + (size_t)term * kSlot + lane;
    uint32_t total = 0;
    bool open = true;
    while (open) {
        const uint32_t entry = *list;
        list += 32;
        const bool closed = entry == kEnd;
        if (!closed) total += liveImpact(entry, live);
        open = !__any_sync(kFull, closed);
    }
    total = warpTotal(total);
    if (lane == 0) bounds[term] = total;
}

int main() {
    uint32_t *index, *bounds;
    CHECKED(cudaMalloc(&index, sizeof(uint32_t) * (size_t)kTerms * kSlot));
    CHECKED(cudaMalloc(&bounds, sizeof(uint32_t) * kTerms));
    buildIndex<<<dim3((kSlot + 255) / 256, kTerms), 256>>>(index);
    CHECKED(cudaGetLastError());

    const LiveRange live{100000u, 8800000u};
    const int grid = (kTerms + kWarpsPerBlock - 1) / kWarpsPerBlock;
    termBounds<<<grid, kWarpsPerBlock * 32>>>(index, bounds, live);
    CHECKED(cudaDeviceSynchronize());

    cudaEvent_t start, stop;
    CHECKED(cudaEventCreate(&start));
    CHECKED(cudaEventCreate(&stop));
    CHECKED(cudaEventRecord(start));
    for (int p = 0; p < kPasses; ++p)
        termBounds<<<grid, kWarpsPerBlock * 32>>>(index, bounds, live);
    CHECKED(cudaEventRecord(stop));
    CHECKED(cudaEventSynchronize(stop));
    CHECKED(cudaGetLastError());
    float ms = 0.0f;
    CHECKED(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.3f\n", ms * 1000.0f / kPasses);

    std::vector<uint32_t> got(kTerms);
    CHECKED(cudaMemcpy(got.data(), bounds, sizeof(uint32_t) * kTerms, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int term = 0; term < kTerms; term += 3) {
        uint32_t want = 0;
        const int length = listLength(term);
        for (int pos = 0; pos < length; ++pos) {
            const uint32_t e = posting(term, pos);
            const uint32_t doc = e >> 8;
            if (doc >= live.first && doc <= live.last) want += e & 255u;
        }
        if (want != got[term]) ++bad;
    }
    if (bad) {
        printf("wrong bounds: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
