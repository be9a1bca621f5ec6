// SPDX-License-Identifier: Apache-2.0
// Computes dark-corrected moments, peak and hot-pixel count of every 64x64 tile of tile-major 16-bit detector frames.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(call)                                                              \
    do {                                                                           \
        cudaError_t err_ = (call);                                                 \
        if (err_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(2);                                                          \
        }                                                                          \
    } while (0)

[[maybe_unused]] static inline uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
[[maybe_unused]] static inline float unit(uint32_t x) { return (hash32(x) >> 8) * (1.0f / 16777216.0f); }

template <class Step>
static float time_steps(int warm, int iters, Step step)
{
    for (int i = 0; i < warm; ++i) step();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    CUDA_OK(cudaEventCreate(&a));
    CUDA_OK(cudaEventCreate(&b));
    CUDA_OK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CUDA_OK(cudaEventRecord(b));
    CUDA_OK(cudaEventSynchronize(b));
    CUDA_OK(cudaGetLastError());
    float ms = 0.f;
    CUDA_OK(cudaEventElapsedTime(&ms, a, b));
    CUDA_OK(cudaEventDestroy(a));
    CUDA_OK(cudaEventDestroy(b));
    return ms * 1000.f / iters;
}

namespace ptx {
__device__ __forceinline__ uint32_t saddr(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void mbar_init(uint64_t* bar, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(saddr(bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void mbar_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void mbar_expect(uint64_t* bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(saddr(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint64_t* bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(saddr(bar)) : "memory");
}
__device__ __forceinline__ bool mbar_try(uint64_t* bar, uint32_t parity)
{
    uint32_t ok;
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(ok) : "r"(saddr(bar)), "r"(parity) : "memory");
    return ok != 0;
}
__device__ __forceinline__ void mbar_wait(uint64_t* bar, uint32_t parity)
{
    while (!mbar_try(bar, parity)) { }
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(saddr(dst)), "l"(src), "r"(bytes), "r"(saddr(bar)) : "memory");
}
}  // namespace ptx

namespace detector {

constexpr int kEdge = 64;

struct Calibration {
    float dark;
    float gain;
    float hot;
};

struct TileStats {
    float sum;
    float sum_sq;
    float peak;
    float hot;
};

template <int Edge, int Stages, int Workers>
struct Pipeline {
    static constexpr int kEdge = Edge;
    static constexpr int kStages = Stages;
    static constexpr int kWorkers = Workers;
    static constexpr int kThreads = (Workers + 1) * 32;
    static constexpr int kRowBytes = Edge * 2;
    static constexpr int kTileBytes = Edge * kRowBytes;
    static constexpr int kSmemBytes = Stages * kTileBytes + 2 * Stages * 8;
    static_assert(Stages % Workers == 0, "every worker owns the same number of stages");
};

__device__ __forceinline__ float pixel(uint32_t pair, uint32_t selector, float bias)
{
    return __uint_as_float(__byte_perm(pair, 0x4b000000u, selector)) - bias;
}

template <bool CountHot>
struct Moments {
    float sum = 0.f, sq = 0.f, peak = -1e30f;
    int hot = 0;
    __device__ __forceinline__ void add(float v, float limit)
    {
        sum += v;
        sq = fmaf(v, v, sq);
        peak = fmaxf(peak, v);
        if constexpr (CountHot) hot += v > limit;
    }
};

template <class P, bool CountHot>
__global__ void __launch_bounds__(P::kThreads, 1)
tile_moments(const uint16_t* __restrict__ frames, TileStats* __restrict__ stats, int tiles, Calibration cal)
{
    extern __shared__ __align__(128) unsigned char smem[];
    uint64_t* full = reinterpret_cast<uint64_t*>(smem + P::kStages * P::kTileBytes);
    uint64_t* empty = full + P::kStages;
    const int warp = threadIdx.x >> 5;
    const int lane = threadIdx.x & 31;
    if (threadIdx.x == 0) {
        for (int s = 0; s < P::kStages; ++s) {
            ptx::mbar_init(&full[s], 1);
            ptx::mbar_init(&empty[s], 1);
        }
        ptx::mbar_init_fence();
    }
    __syncthreads();

    if (warp == P::kWorkers) {
        if (lane == 0) {
            int stage = 0;
            uint32_t parity = 1;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                const unsigned char* src = reinterpret_cast<const unsigned char*>(frames) + static_cast<size_t>(tile) * P::kTileBytes;
                unsigned char* dst = smem + stage * P::kTileBytes;
                ptx::mbar_wait(&empty[stage], parity);
                ptx::mbar_expect(&full[stage], P::kTileBytes);
                for (int row = 0; row < P::kEdge; ++row)
                    ptx::bulk_load(dst + row * P::kRowBytes, src + row * P::kRowBytes, P::kRowBytes, &full[stage]);
                if (++stage == P::kStages) { stage = 0; parity ^= 1; }
            }
        }
        return;
    }

    const float bias = 8388608.f + cal.dark;
    int stage = warp;
    uint32_t parity = 0;
    for (int tile = blockIdx.x + warp * gridDim.x; tile < tiles; tile += P::kWorkers * gridDim.x) {
        ptx::mbar_wait(&full[stage], parity);
        const uint4* px = reinterpret_cast<const uint4*>(smem + stage * P::kTileBytes) + lane;
        Moments<CountHot> m[2];
#pragma unroll 4
        for (int i = 0; i < P::kTileBytes / 512; ++i) {
            const uint4 v = px[i * 32];
            m[0].add(pixel(v.x, 0x7610u, bias), cal.hot);
            m[1].add(pixel(v.x, 0x7632u, bias), cal.hot);
            m[0].add(pixel(v.y, 0x7610u, bias), cal.hot);
            m[1].add(pixel(v.y, 0x7632u, bias), cal.hot);
            m[0].add(pixel(v.z, 0x7610u, bias), cal.hot);
            m[1].add(pixel(v.z, 0x7632u, bias), cal.hot);
            m[0].add(pixel(v.w, 0x7610u, bias), cal.hot);
            m[1].add(pixel(v.w, 0x7632u, bias), cal.hot);
        }
        __syncwarp();
        if (lane == 0) ptx::mbar_arrive(&empty[stage]);
        float sum = m[0].sum + m[1].sum;
        float sq = m[0].sq + m[1].sq;
        float peak = fmaxf(m[0].peak, m[1].peak);
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) {
            sum += __shfl_xor_sync(0xffffffffu, sum, d);
            sq += __shfl_xor_sync(0xffffffffu, sq, d);
            peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, d));
        }
        const int hot = CountHot ? __reduce_add_sync(0xffffffffu, m[0].hot + m[1].hot) : 0;
        if (lane == 0) {
            *reinterpret_cast<float4*>(&stats[tile]) =
                make_float4(sum * cal.gain, sq * cal.gain * cal.gain, peak * cal.gain, static_cast<float>(hot));
        }
        stage += P::kWorkers;
        if (stage >= P::kStages) { stage -= P::kStages; parity ^= 1; }
    }
}

using Ring = Pipeline<kEdge, 24, 8>;

template <bool CountHot>
void launch(int sms, const uint16_t* frames, TileStats* stats, int tiles, Calibration cal)
{
    CUDA_OK(cudaFuncSetAttribute(tile_moments<Ring, CountHot>, cudaFuncAttributeMaxDynamicSharedMemorySize, Ring::kSmemBytes));
    tile_moments<Ring, CountHot><<<sms, Ring::kThreads, Ring::kSmemBytes>>>(frames, stats, tiles, cal);
}

}  // namespace detector

int main()
{
    using namespace detector;
    constexpr int kTiles = 65536, kPixels = kEdge * kEdge;
    const size_t n = static_cast<size_t>(kTiles) * kPixels;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<uint16_t> frames(n);
    for (size_t i = 0; i < n; ++i) {
        const uint32_t h = hash32(static_cast<uint32_t>(i));
        frames[i] = static_cast<uint16_t>((h & 1023u) + 200u + ((h >> 20) == 0 ? 20000u : 0u));
    }
    uint16_t* d_frames; TileStats* d_stats;
    CUDA_OK(cudaMalloc(&d_frames, n * sizeof(uint16_t)));
    CUDA_OK(cudaMalloc(&d_stats, kTiles * sizeof(TileStats)));
    CUDA_OK(cudaMemcpy(d_frames, frames.data(), n * sizeof(uint16_t), cudaMemcpyHostToDevice));
    const Calibration cal{180.f, 1.25f, 5000.f};

    launch<false>(sms, d_frames, d_stats, kTiles, cal);
    const float us = time_steps(3, 60, [&] { launch<true>(sms, d_frames, d_stats, kTiles, cal); });

    std::vector<TileStats> got(kTiles);
    CUDA_OK(cudaMemcpy(got.data(), d_stats, kTiles * sizeof(TileStats), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 512; ++s) {
        const int t = s < 32 ? kTiles - 1 - s : static_cast<int>(hash32(s) % kTiles);
        double sum = 0, sq = 0, peak = -1e30;
        int hot = 0;
        for (int i = 0; i < kPixels; ++i) {
            const double v = frames[static_cast<size_t>(t) * kPixels + i] - static_cast<double>(cal.dark);
            sum += v; sq += v * v; peak = std::fmax(peak, v); hot += v > cal.hot;
        }
        sum *= cal.gain; sq *= static_cast<double>(cal.gain) * cal.gain; peak *= cal.gain;
        if (!(std::fabs(got[t].sum - sum) <= 1e-4 * sum) || !(std::fabs(got[t].sum_sq - sq) <= 1e-4 * sq) ||
            !(std::fabs(got[t].peak - peak) <= 1e-3 * peak) || got[t].hot != static_cast<float>(hot)) {
            std::fprintf(stderr, "tile %d differs from the reference\n", t);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
