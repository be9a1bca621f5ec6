// SPDX-License-Identifier: Apache-2.0. Zone maps for a column store: minimum, maximum, sum and first value of every 256 rows
// of an int32 column. Each warp streams its own zones through a private cp.async ring;
// a lane reads back only the bytes it copied itself, so no block barrier is needed.
#include <cstdio>
#include <cstdint>
#include <climits>
#include <cuda_runtime.h>
#include <vector>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int ZONE = 256;                       // rows per zone
constexpr int LANE_VECS = ZONE / 4 / 32;        // 16-byte pieces per lane and zone
constexpr int WARPS = 8;
constexpr int STAGES = 16;
constexpr int RING_VECS = STAGES * LANE_VECS * 32;
constexpr int SMEM_BYTES = WARPS * RING_VECS * 16;
constexpr uint32_t ROWS = 1u << 27;
constexpr uint32_t ZONES = ROWS / ZONE;

struct alignas(16) Zone { int lo, hi, sum, first; };

__host__ __device__ inline int cell(uint32_t row) {
    uint32_t x = row * 2654435761u + 12345u;
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    x ^= x >> 16;
    return (int)(x >> 12) - 400000 + (int)(row >> 10);
}

__global__ void fill_column(int* col) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t r = blockIdx.x * blockDim.x + threadIdx.x; r < ROWS; r += step) col[r] = cell(r);
}

__device__ __forceinline__ void copy16(uint32_t dst, const void* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void wait_pending() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

struct Tally {
    int lo = INT_MAX, hi = INT_MIN, sum = 0;
    __device__ __forceinline__ void add(int v) {
        lo = min(lo, v);
        hi = max(hi, v);
        sum += v;
    }
};

__global__ void __launch_bounds__(WARPS * 32, 1)
build_zone_map(const int4* __restrict__ col, Zone* __restrict__ map) {
    extern __shared__ __align__(128) int4 smem[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int4* ring = smem + warp * RING_VECS + lane;
    const uint32_t ring_addr = (uint32_t)__cvta_generic_to_shared(ring);
    const uint32_t stride = gridDim.x * WARPS;
    const uint32_t first = blockIdx.x * WARPS + warp;

    auto fetch = [&](uint32_t zone, int slot) {
        if (zone < ZONES) {
            const int4* src = col + (size_t)zone * (ZONE / 4) + lane;
#pragma unroll
            for (int j = 0; j < LANE_VECS; ++j)
                copy16(ring_addr + (slot * LANE_VECS + j) * 512, src + j * 32);
        }
        commit();
    };

#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) fetch(first + s * stride, s);

    int slot = 0;
#pragma unroll 1
    for (uint32_t zone = first; zone < ZONES; zone += stride) {
        fetch(zone + (STAGES - 1) * stride, (slot + STAGES - 1) % STAGES);
        wait_pending<STAGES - 1>();
        const int leading = ring[slot * LANE_VECS * 32].x;
        Tally t;
#pragma unroll
        for (int j = 0; j < LANE_VECS; ++j) {
            const int4 v = ring[(slot * LANE_VECS + j) * 32];
            t.add(v.x);
            t.add(v.y);
            t.add(v.z);
            t.add(v.w);
        }
        Zone z;
        z.lo = __reduce_min_sync(0xffffffffu, t.lo);
        z.hi = __reduce_max_sync(0xffffffffu, t.hi);
        z.sum = __reduce_add_sync(0xffffffffu, t.sum);
        z.first = leading;              // lane 0 holds the zone's first row
        if (lane == 0) *reinterpret_cast<int4*>(map + zone) = make_int4(z.lo, z.hi, z.sum, z.first);
        slot = (slot + 1) % STAGES;
    }
}

int main() {
    int* col;
    Zone* map;
    CK(cudaMalloc(&col, (size_t)ROWS * 4));
    CK(cudaMalloc(&map, (size_t)ZONES * sizeof(Zone)));
    fill_column<<<2112, 256>>>(col);
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CK(cudaFuncSetAttribute(build_zone_map, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    const int iters = 30;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        build_zone_map<<<sms, WARPS * 32, SMEM_BYTES>>>((const int4*)col, map);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<Zone> got(ZONES);
    CK(cudaMemcpy(got.data(), map, (size_t)ZONES * sizeof(Zone), cudaMemcpyDeviceToHost));
    for (uint32_t z = 0; z < ZONES; z += (z + 211 < ZONES || z == ZONES - 1) ? 211 : ZONES - 1 - z) {
        Zone w = {INT_MAX, INT_MIN, 0, cell(z * ZONE)};
        for (uint32_t r = z * ZONE; r < (z + 1) * ZONE; ++r) {
            const int v = cell(r);
            w.lo = v < w.lo ? v : w.lo;
            w.hi = v > w.hi ? v : w.hi;
            w.sum += v;
        }
        if (got[z].lo != w.lo || got[z].hi != w.hi || got[z].sum != w.sum || got[z].first != w.first) {
            printf("zone %u differs\n", z);
            return 1;
        }
    }
    return 0;
}
