// SPDX-License-Identifier: Apache-2.0
// Network operations: scans a window of flow counters (bytes per flow per interval) for bursts above a limit and appends the offending flows to an alarm list.  Bursts are a
// few in a hundred thousand; the list is unordered.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x)                                                                    \
    do {                                                                         \
        cudaError_t c_ = (x);                                                    \
        if (c_ != cudaSuccess) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(c_));  \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr uint32_t kFlows = 1u << 27;          // 512 MB of counters
constexpr int kThreads = 256;
constexpr int kVecPerThread = 4;               // 16-byte loads in flight per thread
constexpr uint32_t kBurst = 1000000u;
constexpr uint32_t kCapacity = 1u << 16;
constexpr int kRounds = 40;

struct Alarm { uint32_t flow, bytes; };
struct AlarmList {
    uint32_t* count;
    Alarm* entries;
};

__host__ __device__ inline uint32_t counterOf(uint32_t flow) {
    uint32_t h = flow;
    h ^= h >> 16; h *= 0x85ebca6bu;
    h ^= h >> 13; h *= 0xc2b2ae35u;
    h ^= h >> 16;
    const uint32_t bytes = h & 0xFFFFu;
    return h < 86000u ? kBurst + 1u + bytes : bytes * 8u;
}

__global__ void fillCounters(uint4* c) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = make_uint4(counterOf(4 * i), counterOf(4 * i + 1), counterOf(4 * i + 2),
                      counterOf(4 * i + 3));
}

__device__ inline void raise(const AlarmList& list, uint32_t flow, uint32_t bytes) {
    const uint32_t slot = atomicAdd(list.count, 1u);
    if (slot < kCapacity) list.entries[slot] = Alarm{flow, bytes};
}

__global__ void __launch_bounds__(kThreads)
scanBursts(const uint4* __restrict__ counters, AlarmList list, uint32_t limit) {
    const uint32_t base = blockIdx.x * (kThreads * kVecPerThread) + threadIdx.x;
    uint4 c[kVecPerThread];
#pragma unroll
    for (int k = 0; k < kVecPerThread; ++k) c[k] = __ldcs(counters + base + k * kThreads);

#pragma unroll
    for (int k = 0; k < kVecPerThread; ++k) {
        const uint32_t top = max(max(c[k].x, c[k].y), max(c[k].z, c[k].w));
        if (top > limit) {
            const uint32_t flow = 4u * (base + k * kThreads);
            if (c[k].x > limit) raise(list, flow, c[k].x);
            if (c[k].y > limit) raise(list, flow + 1u, c[k].y);
            if (c[k].z > limit) raise(list, flow + 2u, c[k].z);
            if (c[k].w > limit) raise(list, flow + 3u, c[k].w);
        }
    }
}

int main() {
    uint4* counters;
    AlarmList list;
    CK(cudaMalloc(&counters, sizeof(uint32_t) * (size_t)kFlows));
    CK(cudaMalloc(&list.count, sizeof(uint32_t)));
    CK(cudaMalloc(&list.entries, sizeof(Alarm) * kCapacity));
    fillCounters<<<kFlows / 4 / 256, 256>>>(counters);
    CK(cudaGetLastError());

    const int grid = kFlows / 4 / (kThreads * kVecPerThread);
    auto round = [&] {
        CK(cudaMemsetAsync(list.count, 0, sizeof(uint32_t)));
        scanBursts<<<grid, kThreads>>>(counters, list, kBurst);
    };
    round();
    CK(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    CK(cudaEventRecord(a));
    for (int r = 0; r < kRounds; ++r) round();
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    CK(cudaGetLastError());
    float ms = 0.f;
    CK(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.3f\n", ms * 1000.f / kRounds);

    uint32_t n = 0;
    CK(cudaMemcpy(&n, list.count, sizeof n, cudaMemcpyDeviceToHost));
    std::vector<Alarm> got(std::min(n, kCapacity));
    CK(cudaMemcpy(got.data(), list.entries, got.size() * sizeof(Alarm), cudaMemcpyDeviceToHost));
    std::sort(got.begin(), got.end(), [](const Alarm& p, const Alarm& q) { return p.flow < q.flow; });

    std::vector<Alarm> want;
    for (uint32_t f = 0; f < kFlows; ++f) {
        const uint32_t v = counterOf(f);
        if (v > kBurst) want.push_back(Alarm{f, v});
    }
    bool same = n == want.size() && n <= kCapacity && n > 0;
    for (size_t i = 0; same && i < got.size(); ++i)
        same = got[i].flow == want[i].flow && got[i].bytes == want[i].bytes;
    if (!same) {
        printf("alarm list differs: %u found, %zu expected\n", n, want.size());
        return 1;
    }
    printf("ok, %u alarms\n", n);
    return 0;
}
