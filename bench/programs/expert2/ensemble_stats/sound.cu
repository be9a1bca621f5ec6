// SPDX-License-Identifier: Apache-2.0
// Mean and spread of a weather ensemble.
// Thirty-two members, each a field of four million cells. A block is persistent, alone on
// its SM; one warp feeds a ring of 16 slots by bulk copies, and eight warps take a slot
// (2048 cells of one member) at a time and keep the running sums in registers.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int MEMBERS = 32;
constexpr int CELLS = 1 << 22;
constexpr int CHUNK = 2048;
constexpr int CHUNKS = CELLS / CHUNK;
constexpr int SLOTS = 16;
constexpr int WORKERS = 8;
constexpr int THREADS = (WORKERS + 1) * 32;
constexpr uint32_t CHUNK_BYTES = CHUNK * sizeof(float);
constexpr int SMEM_BYTES = SLOTS * CHUNK_BYTES;

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__host__ __device__ inline float temperature(unsigned member, unsigned cell) {
    return 280.0f + (mix(cell) >> 8) * (1.0f / 1048576.0f) + (mix(cell * MEMBERS + member + 7u) >> 8) * (1.0f / 4194304.0f);
}
__global__ void fill_members(float* x) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < (size_t)MEMBERS * CELLS; i += (size_t)gridDim.x * blockDim.x)
        x[i] = temperature((unsigned)(i / CELLS), (unsigned)(i % CELLS));
}

__device__ __forceinline__ uint32_t saddr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint64_t* b, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(saddr(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint64_t* b) {
    asm volatile("{ .reg .b64 st; mbarrier.arrive.shared::cta.b64 st, [%0]; }" :: "r"(saddr(b)) : "memory");
}
__device__ __forceinline__ void bar_expect(uint64_t* b, uint32_t bytes) {
    asm volatile("{ .reg .b64 st; mbarrier.arrive.expect_tx.shared::cta.b64 st, [%0], %1; }" :: "r"(saddr(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* b, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(saddr(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(saddr(dst)), "l"(src), "r"(bytes), "r"(saddr(b)) : "memory");
}

__global__ void __launch_bounds__(THREADS, 1)
ensemble_stats(const float* __restrict__ members, float* __restrict__ mean, float* __restrict__ spread) {
    extern __shared__ __align__(128) float slots[];
    __shared__ __align__(8) uint64_t full[SLOTS], empty[SLOTS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < SLOTS; ++s) { bar_init(&full[s], 1); bar_init(&empty[s], WORKERS); }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    int turn = 0;
    if (warp == WORKERS) {
        if (lane != 0) return;
        for (int c = blockIdx.x; c < CHUNKS; c += gridDim.x)
            for (int m = 0; m < MEMBERS; ++m, ++turn) {
                const int s = turn % SLOTS;
                bar_wait(&empty[s], ((turn / SLOTS) & 1) ^ 1);
                bar_expect(&full[s], CHUNK_BYTES);
                bulk_load(slots + s * CHUNK, members + (size_t)m * CELLS + (size_t)c * CHUNK, CHUNK_BYTES, &full[s]);
            }
        return;
    }

    for (int c = blockIdx.x; c < CHUNKS; c += gridDim.x) {
        float base[8], sum[8] = {}, sq[8] = {};
        for (int m = 0; m < MEMBERS; ++m, ++turn) {
            const int s = turn % SLOTS;
            bar_wait(&full[s], (turn / SLOTS) & 1);
            const float4* p = reinterpret_cast<const float4*>(slots + s * CHUNK) + threadIdx.x;
            const float4 a = p[0], b = p[WORKERS * 32];
            __syncwarp();
            if (lane == 0) bar_arrive(&empty[s]);
            const float v[8] = { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w };
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (m == 0) base[i] = v[i];
                const float d = v[i] - base[i];
                sum[i] += d;
                sq[i] = fmaf(d, d, sq[i]);
            }
        }
        float mu[8], sd[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float shift = sum[i] * (1.0f / MEMBERS);
            mu[i] = base[i] + shift;
            sd[i] = sqrtf(fmaxf(sq[i] - sum[i] * shift, 0.0f) * (1.0f / (MEMBERS - 1)));
        }
        float4* om = reinterpret_cast<float4*>(mean + (size_t)c * CHUNK) + threadIdx.x;
        float4* os = reinterpret_cast<float4*>(spread + (size_t)c * CHUNK) + threadIdx.x;
        __stcs(om, make_float4(mu[0], mu[1], mu[2], mu[3]));
        __stcs(om + WORKERS * 32, make_float4(mu[4], mu[5], mu[6], mu[7]));
        __stcs(os, make_float4(sd[0], sd[1], sd[2], sd[3]));
        __stcs(os + WORKERS * 32, make_float4(sd[4], sd[5], sd[6], sd[7]));
    }
}

int main() {
    const int iterations = 50;
    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));
    float *members, *mean, *spread;
    CK(cudaMalloc(&members, (size_t)MEMBERS * CELLS * sizeof(float)));
    CK(cudaMalloc(&mean, CELLS * sizeof(float)));
    CK(cudaMalloc(&spread, CELLS * sizeof(float)));
    fill_members<<<4096, 256>>>(members);
    CK(cudaGetLastError());
    CK(cudaFuncSetAttribute(ensemble_stats, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    ensemble_stats<<<sms, THREADS, SMEM_BYTES>>>(members, mean, spread);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) ensemble_stats<<<sms, THREADS, SMEM_BYTES>>>(members, mean, spread);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> gm(CELLS), gs(CELLS);
    CK(cudaMemcpy(gm.data(), mean, CELLS * sizeof(float), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(gs.data(), spread, CELLS * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (unsigned c = 0; c < CELLS; c += 1013) {
        double s = 0, q = 0;
        for (int m = 0; m < MEMBERS; ++m) s += temperature(m, c);
        s /= MEMBERS;
        for (int m = 0; m < MEMBERS; ++m) { const double d = temperature(m, c) - s; q += d * d; }
        q = std::sqrt(q / (MEMBERS - 1));
        if (!(std::fabs(gm[c] - s) <= 1e-4 * s) || !(std::fabs(gs[c] - q) <= 5e-3 * q)) ++bad;
    }
    std::printf("cells out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
