// SPDX-License-Identifier: Apache-2.0. Dose-weighted sum of the frames of a cryo-EM movie, with gain correction.
// Persistent blocks, one producer thread feeding a ring by bulk copies, eight
// consumer warps accumulating a tile of 2048 pixels in registers.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kFrames = 24;
constexpr int kTile = 2048, kTiles = 2112;
constexpr size_t kPixels = size_t(kTile) * kTiles;          // 2112 x 2048 detector
constexpr int kStages = 8, kConsumers = 8;
constexpr int kThreads = 32 * (kConsumers + 1);
constexpr uint32_t kStageBytes = kTile * sizeof(float);
constexpr int kSmem = kStages * kStageBytes;

__constant__ float c_weight[kFrames];

__host__ __device__ inline float exposure(uint32_t frame, uint32_t pixel)
{
    uint32_t h = pixel * 2654435761u ^ (frame * 2246822519u + 97u);
    h ^= h >> 15; h *= 0x2c1b3c6du; h ^= h >> 12;
    return (h >> 8) * (1.0f / 16777216.0f);
}
__host__ __device__ inline float gain_of(uint32_t pixel) { return 0.9f + 0.0002f * (pixel % 1000u); }

__global__ void expose(float* movie, float* gain)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    gain[i] = gain_of(i);
    for (uint32_t f = 0; f < kFrames; ++f) movie[f * kPixels + i] = exposure(f, i);
}

__device__ __forceinline__ uint32_t smem(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void bar_init(uint64_t* b, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(smem(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint64_t* b)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" :: "r"(smem(b)) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* b, int parity)
{
    int done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                     " selp.b32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(smem(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* b)
{
    asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared::cta.b64 t, [%0], %1; }"
                 :: "r"(smem(b)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(smem(dst)), "l"(src), "r"(bytes), "r"(smem(b)) : "memory");
}

__device__ __forceinline__ void add(float4& s, float w, float4 x)
{
    s.x = fmaf(w, x.x, s.x); s.y = fmaf(w, x.y, s.y);
    s.z = fmaf(w, x.z, s.z); s.w = fmaf(w, x.w, s.w);
}
__device__ __forceinline__ float4 times(float4 a, float4 b)
{
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

__global__ void __launch_bounds__(kThreads, 2)
weighted_sum(const float* __restrict__ movie, const float* __restrict__ gain, float* __restrict__ image)
{
    extern __shared__ __align__(128) float4 ring[];
    __shared__ uint64_t full[kStages], empty[kStages];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            bar_init(&full[s], 1);
            bar_init(&empty[s], kConsumers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    int stage = 0, phase = 0;
    auto next = [&] { if (++stage == kStages) { stage = 0; phase ^= 1; } };
    if (warp == kConsumers) {
        if (lane == 0) {
            for (int t = blockIdx.x; t < kTiles; t += gridDim.x)
                for (int f = 0; f < kFrames; ++f, next()) {
                    bar_wait(&empty[stage], phase ^ 1);
                    bulk_load(ring + stage * (kTile / 4), movie + f * kPixels + size_t(t) * kTile,
                              kStageBytes, &full[stage]);
                }
        }
    } else {
        const int i = threadIdx.x;
        for (int t = blockIdx.x; t < kTiles; t += gridDim.x) {
            const float4* g = reinterpret_cast<const float4*>(gain + size_t(t) * kTile);
            const float4 g0 = __ldcs(g + i), g1 = __ldcs(g + 256 + i);
            float4 s0 = {}, s1 = {};
            for (int f = 0; f < kFrames; ++f, next()) {
                bar_wait(&full[stage], phase);
                const float4 x0 = ring[stage * (kTile / 4) + i];
                const float4 x1 = ring[stage * (kTile / 4) + 256 + i];
                add(s0, c_weight[f], x0);
                add(s1, c_weight[f], x1);
                __syncwarp();
                if (lane == 0) bar_arrive(&empty[stage]);
            }
            float4* o = reinterpret_cast<float4*>(image + size_t(t) * kTile);
            __stcs(o + i, times(s0, g0));
            __stcs(o + 256 + i, times(s1, g1));
        }
    }
}

int main()
{
    float weight[kFrames];
    for (int f = 0; f < kFrames; ++f) weight[f] = std::exp(-0.04f * f);
    CHECK(cudaMemcpyToSymbol(c_weight, weight, sizeof weight));
    float *movie, *gain, *image;
    CHECK(cudaMalloc(&movie, kFrames * kPixels * sizeof(float)));
    CHECK(cudaMalloc(&gain, kPixels * sizeof(float)));
    CHECK(cudaMalloc(&image, kPixels * sizeof(float)));
    expose<<<kPixels / 256, 256>>>(movie, gain);
    int sms;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CHECK(cudaFuncSetAttribute(weighted_sum, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    for (int i = -2; i < iterations; ++i) {
        if (i == 0) CHECK(cudaEventRecord(t0));
        weighted_sum<<<2 * sms, kThreads, kSmem>>>(movie, gain, image);
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float> got(kPixels);
    CHECK(cudaMemcpy(got.data(), image, kPixels * sizeof(float), cudaMemcpyDeviceToHost));
    for (int k = 0; k < 20000; ++k) {
        const uint32_t i = uint32_t((k * 1000003ULL + 13) % kPixels);
        double want = 0.0;
        for (int f = 0; f < kFrames; ++f) want += double(weight[f]) * exposure(f, i);
        want *= gain_of(i);
        if (!(std::fabs(got[i] - want) < 1e-3)) {
            std::printf("pixel %u: %g, expected %g\n", i, got[i], want);
            return 1;
        }
    }
    return 0;
}
