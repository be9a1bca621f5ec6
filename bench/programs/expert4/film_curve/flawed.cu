// SPDX-License-Identifier: Apache-2.0
// Grades an HDR frame: exposure, colour matrix and a filmic curve on float RGBA, written as half RGBA.
#include <cuda_fp16.h>
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

namespace grade {

constexpr int kWorkers = 8;
constexpr int kThreads = (kWorkers + 1) * 32;

struct Look {
    float m[9];
    float exposure;
};

struct Filmic {
    __host__ __device__ static float curve(float x)
    {
        const float num = x * (2.51f * x + 0.03f);
        const float den = x * (2.43f * x + 0.59f) + 0.14f;
#ifdef __CUDA_ARCH__
        return __saturatef(__fdividef(num, den));
#else
        return std::fmin(1.f, std::fmax(0.f, num / den));
#endif
    }
};
struct Reinhard {
    __host__ __device__ static float curve(float x)
    {
#ifdef __CUDA_ARCH__
        return __fdividef(x, 1.f + x);
#else
        return x / (1.f + x);
#endif
    }
};

template <class Curve>
__host__ __device__ inline float4 apply(const Look& l, float4 p)
{
    const float r = p.x * l.exposure, g = p.y * l.exposure, b = p.z * l.exposure;
    const float x = l.m[0] * r + l.m[1] * g + l.m[2] * b;
    const float y = l.m[3] * r + l.m[4] * g + l.m[5] * b;
    const float z = l.m[6] * r + l.m[7] * g + l.m[8] * b;
    return make_float4(Curve::curve(x), Curve::curve(y), Curve::curve(z), p.w);
}

__device__ __forceinline__ uint2 pack(float4 v)
{
    const __half2 a = __floats2half2_rn(v.x, v.y), b = __floats2half2_rn(v.z, v.w);
    return make_uint2(*reinterpret_cast<const uint32_t*>(&a), *reinterpret_cast<const uint32_t*>(&b));
}

template <int PixelsPerThread, int Stages>
struct Ring {
    static constexpr int kPerThread = PixelsPerThread;
    static constexpr int kStages = Stages;
    static constexpr int kPixels = PixelsPerThread * kWorkers * 32;
    static constexpr int kTileBytes = kPixels * static_cast<int>(sizeof(float4));
    static constexpr int kSmemBytes = Stages * kTileBytes + 2 * Stages * 8;
};

template <class R, class Curve>
__global__ void __launch_bounds__(kThreads, 1)
grade_frame(const float4* __restrict__ in, uint2* __restrict__ out, int tiles, Look look)
{
    extern __shared__ __align__(128) unsigned char smem[];
    uint64_t* full = reinterpret_cast<uint64_t*>(smem + R::kStages * R::kTileBytes);
    uint64_t* empty = full + R::kStages;
    if (threadIdx.x == 0) {
        for (int s = 0; s < R::kStages; ++s) {
            ptx::mbar_init(&full[s], 1);
            ptx::mbar_init(&empty[s], kWorkers);
        }
        ptx::mbar_init_fence();
    }
    __syncthreads();

    int stage = 0;
    if (threadIdx.x >= kWorkers * 32) {
        if (threadIdx.x == kWorkers * 32) {
            uint32_t parity = 1;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                ptx::mbar_wait(&empty[stage], parity);
                ptx::mbar_expect(&full[stage], R::kTileBytes);
                ptx::bulk_load(smem + stage * R::kTileBytes, in + static_cast<size_t>(tile) * R::kPixels, R::kTileBytes, &full[stage]);
                if (++stage == R::kStages) { stage = 0; parity ^= 1; }
            }
        }
        return;
    }

    uint32_t parity = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        ptx::mbar_wait(&full[stage], parity);
        const float4* src = reinterpret_cast<const float4*>(smem + stage * R::kTileBytes) + threadIdx.x;
        uint2* dst = out + static_cast<size_t>(tile) * R::kPixels + threadIdx.x;
#pragma unroll
        for (int p = 0; p < R::kPerThread; ++p)
            dst[p * kWorkers * 32] = pack(apply<Curve>(look, src[p * kWorkers * 32]));
        __threadfence();
        __syncwarp();
        if ((threadIdx.x & 31) == 0) ptx::mbar_arrive(&empty[stage]);
        if (++stage == R::kStages) { stage = 0; parity ^= 1; }
    }
}

template <class R, class Curve>
void launch(int sms, const float4* in, uint2* out, int pixels, const Look& look)
{
    static bool ready = false;
    if (!ready) {
        CUDA_OK(cudaFuncSetAttribute(grade_frame<R, Curve>, cudaFuncAttributeMaxDynamicSharedMemorySize, R::kSmemBytes));
        ready = true;
    }
    grade_frame<R, Curve><<<sms, kThreads, R::kSmemBytes>>>(in, out, pixels / R::kPixels, look);
}

using Frame = Ring<2, 16>;
using Proxy = Ring<1, 16>;

}  // namespace grade

int main()
{
    using namespace grade;
    constexpr int kPixels = 5760 * 4096;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<float4> in(kPixels);
    for (int i = 0; i < kPixels; ++i) {
        const uint32_t h = hash32(i);
        in[i] = make_float4((h & 255) * 0.01f, (h >> 8 & 255) * 0.008f, (h >> 16 & 255) * 0.012f, (h >> 24) / 255.f);
    }
    float4* d_in; uint2* d_out;
    CUDA_OK(cudaMalloc(&d_in, kPixels * sizeof(float4)));
    CUDA_OK(cudaMalloc(&d_out, kPixels * sizeof(uint2)));
    CUDA_OK(cudaMemcpy(d_in, in.data(), kPixels * sizeof(float4), cudaMemcpyHostToDevice));
    const Look look{{0.82f, 0.12f, 0.06f, 0.08f, 0.86f, 0.06f, 0.04f, 0.10f, 0.86f}, 0.8f};

    launch<Proxy, Reinhard>(sms, d_in, d_out, kPixels / 4, look);
    const float us = time_steps(3, 60, [&] { launch<Frame, Filmic>(sms, d_in, d_out, kPixels, look); });

    std::vector<__half> got(static_cast<size_t>(kPixels) * 4);
    CUDA_OK(cudaMemcpy(got.data(), d_out, kPixels * sizeof(uint2), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 100000; ++s) {
        const int p = s < 1024 ? kPixels - 1 - s : static_cast<int>(hash32(s) % kPixels);
        const float4 r = apply<Filmic>(look, in[p]);
        const float ref[4] = {r.x, r.y, r.z, r.w};
        for (int c = 0; c < 4; ++c) {
            const float v = __half2float(got[static_cast<size_t>(p) * 4 + c]);
            if (!(std::fabs(v - ref[c]) <= 2e-3f)) {
                std::fprintf(stderr, "pixel %d channel %d: got %f, expected %f\n", p, c, v, ref[c]);
                return 1;
            }
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
