// SPDX-License-Identifier: Apache-2.0
// Condition monitoring: RMS and crest factor of every 512-sample window of a day of accelerometer data.  One producer thread a CTA keeps eight 16 KiB bulk
// copies in flight; eight warps each reduce one window of a stage.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s line %d\n", cudaGetErrorString(e_), __LINE__); exit(2); } } while (0)

constexpr int WINDOW = 512, WARPS = 8, STAGES = 8;
constexpr int STAGE_FLOATS = WINDOW * WARPS, STAGE_BYTES = STAGE_FLOATS * 4;
constexpr int THREADS = (WARPS + 1) * 32;
constexpr int CHUNKS = 32768;                        // 512 MiB of samples
constexpr size_t SAMPLES = size_t(CHUNKS) * STAGE_FLOATS;
constexpr int WINDOWS = CHUNKS * WARPS;

__device__ __forceinline__ uint32_t sptr(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void mb_init(uint64_t* b, uint32_t n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sptr(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void mb_expect(uint64_t* b, uint32_t bytes) {
    asm volatile("{ .reg .b64 st; mbarrier.arrive.expect_tx.shared::cta.b64 st, [%0], %1; }" ::"r"(sptr(b)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mb_arrive(uint64_t* b) {
    asm volatile("{ .reg .b64 st; mbarrier.arrive.shared::cta.b64 st, [%0]; }" ::"r"(sptr(b)) : "memory");
}
__device__ __forceinline__ void mb_wait(uint64_t* b, uint32_t parity) {
    uint32_t ok;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(ok) : "r"(sptr(b)), "r"(parity) : "memory");
    } while (!ok);
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(sptr(dst)), "l"(src), "r"(bytes), "r"(sptr(bar)) : "memory");
}

__global__ void __launch_bounds__(THREADS, 1)
window_statistics(const float* __restrict__ samples, float2* __restrict__ stats) {
    extern __shared__ __align__(128) float ring[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mb_init(&full[s], 1);
            mb_init(&empty[s], WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    if (warp == WARPS) {
        if (lane != 0) return;
        int it = 0;
        for (int c = blockIdx.x; c < CHUNKS; c += gridDim.x, ++it) {
            const int s = it % STAGES;
            mb_wait(&empty[s], ((it / STAGES) & 1) ^ 1);
            mb_expect(&full[s], STAGE_BYTES);
            bulk_load(ring + s * STAGE_FLOATS, samples + size_t(c) * STAGE_FLOATS, STAGE_BYTES, &full[s]);
        }
        return;
    }

    int it = 0;
    for (int c = blockIdx.x; c < CHUNKS; c += gridDim.x, ++it) {
        const int s = it % STAGES;
        mb_wait(&full[s], (it / STAGES) & 1);
        const float4* w = reinterpret_cast<const float4*>(ring + s * STAGE_FLOATS + warp * WINDOW);
        float4 v[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = w[i * 32 + lane];
        __syncwarp();
        float energy = 0.f, peak = 0.f;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            energy += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
            peak = fmaxf(fmaxf(fmaxf(peak, fabsf(v[i].x)), fmaxf(fabsf(v[i].y), fabsf(v[i].z))), fabsf(v[i].w));
        }
#pragma unroll
        for (int o = 16; o; o >>= 1) energy += __shfl_xor_sync(~0u, energy, o);
        const uint32_t top = __reduce_max_sync(~0u, __float_as_uint(peak));
        if (lane == 0) {
            mb_arrive(&empty[s]);
            const float rms = sqrtf(energy * (1.f / WINDOW));
            stats[size_t(c) * WARPS + warp] = make_float2(rms, __uint_as_float(top) / rms);
        }
    }
}

__host__ __device__ inline float sample_at(uint32_t i) {
    uint32_t x = i * 0x9e3779b1u + 0x85ebca6bu;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    const float noise = float(x >> 8) * (1.f / 8388608.f) - 1.f;
    return noise * float(1 + ((i >> 9) & 7));
}
__global__ void record_day(float* samples) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < SAMPLES; i += size_t(gridDim.x) * blockDim.x)
        samples[i] = sample_at(uint32_t(i));
}

int main() {
    float* samples; float2* stats;
    CK(cudaMalloc(&samples, SAMPLES * 4));
    CK(cudaMalloc(&stats, size_t(WINDOWS) * sizeof(float2)));
    record_day<<<2112, 256>>>(samples);
    const int smem = STAGES * STAGE_BYTES;
    CK(cudaFuncSetAttribute(window_statistics, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    window_statistics<<<sms, THREADS, smem>>>(samples, stats);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    const int n = 100;
    CK(cudaEventRecord(a));
    for (int i = 0; i < n; ++i) window_statistics<<<sms, THREADS, smem>>>(samples, stats);
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / n);

    std::vector<float2> got(WINDOWS);
    CK(cudaMemcpy(got.data(), stats, size_t(WINDOWS) * sizeof(float2), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int k = 0; k < 4000; ++k) {
        const uint32_t w = k == 0 ? WINDOWS - 1 : uint32_t(k * 2654435761ull % WINDOWS);
        double energy = 0, peak = 0;
        for (int i = 0; i < WINDOW; ++i) {
            const double v = sample_at(w * WINDOW + i);
            energy += v * v;
            peak = std::fmax(peak, std::fabs(v));
        }
        const double rms = std::sqrt(energy / WINDOW);
        if (!(std::fabs(got[w].x - rms) <= 1e-3 * rms) || !(std::fabs(got[w].y - peak / rms) <= 2e-3 * peak / rms)) ++bad;
    }
    if (bad) printf("bad windows: %d\n", bad);
    return bad ? 1 : 0;
}
