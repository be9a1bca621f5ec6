// SPDX-License-Identifier: Apache-2.0
// Scores every bf16 embedding of a retrieval index against one query vector (inner product or cosine).
#include <cuda_bf16.h>
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

namespace retrieval {

constexpr int kConsumerWarps = 8;
constexpr int kThreads = (kConsumerWarps + 1) * 32;

template <int Dim, int RowsPerTile, int Stages>
struct RingConfig {
    static constexpr int kDim = Dim;
    static constexpr int kRows = RowsPerTile;
    static constexpr int kStages = Stages;
    static constexpr int kTileBytes = Dim * RowsPerTile * static_cast<int>(sizeof(__nv_bfloat16));
    static constexpr int kSmemBytes = Stages * kTileBytes + 2 * Stages * static_cast<int>(sizeof(uint64_t));
    static_assert(Dim % 128 == 0 && RowsPerTile == kConsumerWarps * 4, "a warp takes four rows of a tile");
};

struct InnerProduct {
    static constexpr bool kNeedsNorm = false;
    __device__ static float finish(float dot, float) { return dot; }
};
struct Cosine {
    static constexpr bool kNeedsNorm = true;
    __device__ static float finish(float dot, float inv_norm) { return dot * inv_norm; }
};

__device__ __forceinline__ float lo(uint32_t v) { return __uint_as_float(v << 16); }
__device__ __forceinline__ float hi(uint32_t v) { return __uint_as_float(v & 0xffff0000u); }

__device__ __forceinline__ float dot8(const uint4& v, const float (&q)[8], float acc)
{
    acc = fmaf(lo(v.x), q[0], acc); acc = fmaf(hi(v.x), q[1], acc);
    acc = fmaf(lo(v.y), q[2], acc); acc = fmaf(hi(v.y), q[3], acc);
    acc = fmaf(lo(v.z), q[4], acc); acc = fmaf(hi(v.z), q[5], acc);
    acc = fmaf(lo(v.w), q[6], acc); acc = fmaf(hi(v.w), q[7], acc);
    return acc;
}

template <class Cfg, class Metric>
__global__ void __launch_bounds__(kThreads, 1)
score_rows(const __nv_bfloat16* __restrict__ index, const float* __restrict__ query,
           const float* __restrict__ inv_norm, float* __restrict__ scores, int tiles)
{
    extern __shared__ __align__(128) unsigned char smem[];
    uint64_t* full = reinterpret_cast<uint64_t*>(smem + Cfg::kStages * Cfg::kTileBytes);
    uint64_t* empty = full + Cfg::kStages;
    const int warp = threadIdx.x >> 5;
    const int lane = threadIdx.x & 31;

    if (threadIdx.x == 0) {
        for (int s = 0; s < Cfg::kStages; ++s) {
            ptx::mbar_init(&full[s], 1);
            ptx::mbar_init(&empty[s], kConsumerWarps);
        }
        ptx::mbar_init_fence();
    }
    __syncthreads();

    if (warp == kConsumerWarps) {
        if (lane == 0) {
            int stage = 0;
            uint32_t parity = 1;
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
                ptx::mbar_wait(&empty[stage], parity);
                ptx::mbar_expect(&full[stage], Cfg::kTileBytes);
                ptx::bulk_load(smem + stage * Cfg::kTileBytes,
                               index + static_cast<size_t>(tile) * Cfg::kRows * Cfg::kDim, Cfg::kTileBytes, &full[stage]);
                if (++stage == Cfg::kStages) { stage = 0; parity ^= 1; }
            }
        }
        return;
    }

    constexpr int kParts = Cfg::kDim / 128;
    const int half = lane >> 4;
    const int sub = lane & 15;
    float q[kParts][8];
#pragma unroll
    for (int p = 0; p < kParts; ++p)
#pragma unroll
        for (int i = 0; i < 8; ++i) q[p][i] = query[p * 128 + sub * 8 + i];

    int stage = 0;
    uint32_t parity = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        ptx::mbar_wait(&full[stage], parity);
        const uint4* rows = reinterpret_cast<const uint4*>(smem + stage * Cfg::kTileBytes);
        float a = 0.f, b = 0.f;
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
            const uint4 va = rows[(warp * 4 + half) * (Cfg::kDim / 8) + p * 16 + sub];
            const uint4 vb = rows[(warp * 4 + 2 + half) * (Cfg::kDim / 8) + p * 16 + sub];
            a = dot8(va, q[p], a);
            b = dot8(vb, q[p], b);
        }
        __syncwarp();
        if (lane == 0) ptx::mbar_arrive(&empty[stage]);
#pragma unroll
        for (int d = 8; d > 0; d >>= 1) {
            a += __shfl_xor_sync(0xffffffffu, a, d);
            b += __shfl_xor_sync(0xffffffffu, b, d);
        }
        const float a1 = __shfl_down_sync(0xffffffffu, a, 16);
        const float b1 = __shfl_down_sync(0xffffffffu, b, 16);
        if (lane == 0) {
            const int at = tile * Cfg::kRows + warp * 4;
            float4 n = make_float4(1.f, 1.f, 1.f, 1.f);
            if constexpr (Metric::kNeedsNorm) n = *reinterpret_cast<const float4*>(inv_norm + at);
            *reinterpret_cast<float4*>(scores + at) = make_float4(
                Metric::finish(a, n.x), Metric::finish(a1, n.y), Metric::finish(b, n.z), Metric::finish(b1, n.w));
        }
        if (++stage == Cfg::kStages) { stage = 0; parity ^= 1; }
    }
}

template <class Cfg, class Metric>
void launch(int sms, const __nv_bfloat16* index, const float* query, const float* inv_norm, float* scores, int rows)
{
    static bool ready = false;
    if (!ready) {
        CUDA_OK(cudaFuncSetAttribute(score_rows<Cfg, Metric>, cudaFuncAttributeMaxDynamicSharedMemorySize, Cfg::kSmemBytes));
        ready = true;
    }
    score_rows<Cfg, Metric><<<sms, kThreads, Cfg::kSmemBytes>>>(index, query, inv_norm, scores, rows / Cfg::kRows);
}

using Ring128 = RingConfig<128, 32, 2>;
using Ring256 = RingConfig<256, 32, 8>;

}  // namespace retrieval

int main()
{
    constexpr int kRows = 2 * 1024 * 1024, kDim = 128;
    const size_t elems = static_cast<size_t>(kRows) * kDim;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));

    std::vector<__nv_bfloat16> index(elems);
    std::vector<__nv_bfloat16> pool(1 << 16);
    for (size_t i = 0; i < pool.size(); ++i) pool[i] = __float2bfloat16(unit(static_cast<uint32_t>(i)) - 0.5f);
    for (size_t i = 0; i < elems; ++i) index[i] = pool[(i * 7 + (i >> 7) * 131) & 0xffff];
    std::vector<float> query(256), inv(kRows);
    for (int i = 0; i < 256; ++i) query[i] = unit(0x51000000u + i) - 0.5f;
    for (int i = 0; i < kRows; ++i) inv[i] = 0.1f + unit(0x62000000u + i);

    __nv_bfloat16* d_index; float *d_query, *d_inv, *d_scores;
    CUDA_OK(cudaMalloc(&d_index, elems * sizeof(__nv_bfloat16)));
    CUDA_OK(cudaMalloc(&d_query, 256 * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_inv, kRows * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_scores, kRows * sizeof(float)));
    CUDA_OK(cudaMemcpy(d_index, index.data(), elems * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_query, query.data(), 256 * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_inv, inv.data(), kRows * sizeof(float), cudaMemcpyHostToDevice));

    std::vector<float> got(kRows);
    auto verify = [&](int dim, bool cosine) {
        CUDA_OK(cudaMemcpy(got.data(), d_scores, kRows * sizeof(float), cudaMemcpyDeviceToHost));
        const int rows = static_cast<int>(elems / dim);
        for (int s = 0; s < 4096; ++s) {
            const int r = s < 64 ? rows - 1 - s : static_cast<int>(hash32(s) % rows);
            double ref = 0.0;
            for (int k = 0; k < dim; ++k) ref += static_cast<double>(__bfloat162float(index[static_cast<size_t>(r) * dim + k])) * query[k];
            if (cosine) ref *= inv[r];
            if (!(std::fabs(got[r] - ref) <= 1e-3)) {
                std::fprintf(stderr, "row %d: got %f, expected %f\n", r, got[r], ref);
                std::exit(1);
            }
        }
    };

    retrieval::launch<retrieval::Ring256, retrieval::Cosine>(sms, d_index, d_query, d_inv, d_scores, kRows / 2);
    CUDA_OK(cudaGetLastError());
    verify(256, true);

    const float us = time_steps(5, 100, [&] {
        retrieval::launch<retrieval::Ring128, retrieval::InnerProduct>(sms, d_index, d_query, d_inv, d_scores, kRows);
    });
    verify(128, false);
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
