// SPDX-License-Identifier: Apache-2.0
// Adds a residual stream and applies RMS normalisation to the rows of a bf16 activation matrix.
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

namespace rmsnorm {

struct __align__(16) Bf16x8 {
    __nv_bfloat162 v[4];
};

template <int Width, int VectorsPerThread>
struct Shape {
    static constexpr int kWidth = Width;
    static constexpr int kVectors = VectorsPerThread;
    static constexpr int kThreads = Width / 8 / VectorsPerThread;
    static_assert(kThreads % 32 == 0 && kThreads <= 1024, "whole warps");
};

template <class S, bool KeepSum>
__global__ void __launch_bounds__(S::kThreads, 1280 / S::kThreads)
add_rmsnorm(const Bf16x8* __restrict__ x, const Bf16x8* __restrict__ residual, const Bf16x8* __restrict__ gamma,
            Bf16x8* __restrict__ sum_out, Bf16x8* __restrict__ out, float eps)
{
    constexpr int kWarps = S::kThreads / 32;
    __shared__ float partial[kWarps];
    const size_t base = static_cast<size_t>(blockIdx.x) * (S::kWidth / 8) + threadIdx.x;
    Bf16x8 a[S::kVectors], weight[S::kVectors];
    float sq = 0.f;
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
        const uint4 ra = __ldcs(reinterpret_cast<const uint4*>(x + base + k * S::kThreads));
        const uint4 rb = __ldcs(reinterpret_cast<const uint4*>(residual + base + k * S::kThreads));
        weight[k] = gamma[threadIdx.x + k * S::kThreads];
        const Bf16x8 va = *reinterpret_cast<const Bf16x8*>(&ra), vb = *reinterpret_cast<const Bf16x8*>(&rb);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            a[k].v[i] = __hadd2(va.v[i], vb.v[i]);
            const float2 f = __bfloat1622float2(a[k].v[i]);
            sq = fmaf(f.x, f.x, sq);
            sq = fmaf(f.y, f.y, sq);
        }
        if constexpr (KeepSum)
            __stcs(reinterpret_cast<uint4*>(sum_out + base + k * S::kThreads), *reinterpret_cast<const uint4*>(&a[k]));
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) sq += __shfl_xor_sync(0xffffffffu, sq, d);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = sq;
    __syncthreads();
    float total = 0.f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += partial[w];
    const float scale = rsqrtf(fmaf(total, 1.f / S::kWidth, eps));
#pragma unroll
    for (int k = 0; k < S::kVectors; ++k) {
        Bf16x8 r;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 f = __bfloat1622float2(a[k].v[i]), w = __bfloat1622float2(weight[k].v[i]);
            r.v[i] = __floats2bfloat162_rn(f.x * scale * w.x, f.y * scale * w.y);
        }
        __stcs(reinterpret_cast<uint4*>(out + base + k * S::kThreads), *reinterpret_cast<const uint4*>(&r));
    }
}

template <class S, bool KeepSum>
void launch(const Bf16x8* x, const Bf16x8* res, const Bf16x8* gamma, Bf16x8* sum, Bf16x8* out, int rows)
{
    add_rmsnorm<S, KeepSum><<<rows, S::kThreads>>>(x, res, gamma, sum, out, 1e-6f);
}

}  // namespace rmsnorm

int main()
{
    using namespace rmsnorm;
    using Wide = Shape<4096, 2>;
    using Narrow = Shape<2048, 1>;
    constexpr int kRows = 528 * 48, kWidth = Wide::kWidth;
    const size_t n = static_cast<size_t>(kRows) * kWidth;
    std::vector<__nv_bfloat16> pool(4096), x(n), res(n), gamma(kWidth), got(n), sum(n);
    for (int i = 0; i < 4096; ++i) pool[i] = __float2bfloat16(unit(i) * 4.f - 2.f);
    for (size_t i = 0; i < n; ++i) {
        const uint32_t h = hash32(static_cast<uint32_t>(i));
        x[i] = pool[h & 4095];
        res[i] = pool[h >> 12 & 4095];
    }
    for (int i = 0; i < kWidth; ++i) gamma[i] = __float2bfloat16(0.5f + unit(0x41000000u + i));
    Bf16x8 *d_x, *d_res, *d_gamma, *d_sum, *d_out;
    CUDA_OK(cudaMalloc(&d_x, n * 2));
    CUDA_OK(cudaMalloc(&d_res, n * 2));
    CUDA_OK(cudaMalloc(&d_sum, n * 2));
    CUDA_OK(cudaMalloc(&d_out, n * 2));
    CUDA_OK(cudaMalloc(&d_gamma, kWidth * 2));
    CUDA_OK(cudaMemcpy(d_x, x.data(), n * 2, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_res, res.data(), n * 2, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_gamma, gamma.data(), kWidth * 2, cudaMemcpyHostToDevice));

    launch<Narrow, false>(d_x, d_res, d_gamma, d_sum, d_out, kRows);
    const float us = time_steps(3, 60, [&] { launch<Wide, true>(d_x, d_res, d_gamma, d_sum, d_out, kRows); });

    CUDA_OK(cudaMemcpy(got.data(), d_out, n * 2, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(sum.data(), d_sum, n * 2, cudaMemcpyDeviceToHost));
    for (int s = 0; s < 500; ++s) {
        const size_t r = s < 16 ? kRows - 1 - s : hash32(s) % kRows;
        double sq = 0;
        std::vector<double> a(kWidth);
        for (int c = 0; c < kWidth; ++c) {
            a[c] = __bfloat162float(__float2bfloat16(__bfloat162float(x[r * kWidth + c]) + __bfloat162float(res[r * kWidth + c])));
            sq += a[c] * a[c];
        }
        const double scale = 1.0 / std::sqrt(sq / kWidth + 1e-6);
        for (int c = 0; c < kWidth; ++c) {
            const double ref = a[c] * scale * __bfloat162float(gamma[c]);
            if (!(std::fabs(__bfloat162float(got[r * kWidth + c]) - ref) <= 0.03) ||
                !(std::fabs(__bfloat162float(sum[r * kWidth + c]) - a[c]) <= 1e-6)) {
                std::fprintf(stderr, "row %zu column %d: got %f, expected %f\n", r, c, __bfloat162float(got[r * kWidth + c]), ref);
                return 1;
            }
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
