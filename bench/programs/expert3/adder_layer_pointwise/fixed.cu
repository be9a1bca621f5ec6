// SPDX-License-Identifier: Apache-2.0. Pointwise adder layer (AdderNet): the response of a filter is the negative L1
// distance between the pixel's channel vector and the filter's weights.
//   y[p][k] = -sum_c |x[p][c] - w[k][c]|
// Half-precision operands; partial sums over 32 channels are folded into float.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kPixels = 16384, kChannels = 512, kFilters = 512;
constexpr int BM = 64, BN = 128, BC = 32;   // block tile: pixels, filters, channels
constexpr int kPitch = BC + 8;              // 80-byte rows keep 16-byte reads conflict-free
constexpr int TM = 4, TN = 8, kThreads = 256;

__host__ __device__ inline float sample(uint32_t x)   // multiples of 1/256 in [-0.5, 0.5)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return (float)((int)(x & 255) - 128) * (1.0f / 256.0f);
}

__global__ void make_tensor(__half* t, uint32_t n, uint32_t salt)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) t[i] = __float2half(sample(i + salt));
}

__device__ inline void cp_async16(void* dst, const void* src)
{
    uint32_t d = (uint32_t)__cvta_generic_to_shared(dst);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(src) : "memory");
}

template <int Rows>
__device__ inline void stage_rows(__half* dst, const __half* src, int c0)
{
#pragma unroll
    for (int i = 0; i < Rows * (BC / 8) / kThreads; ++i) {
        const int id = threadIdx.x + i * kThreads;
        const int row = id / (BC / 8), part = id % (BC / 8);
        cp_async16(dst + row * kPitch + part * 8, src + (size_t)row * kChannels + c0 + part * 8);
    }
}

using Partial = __half2;

__device__ inline Partial add_distance(Partial acc, __half2 x, __half2 w)
{
    return __hadd2(acc, __habs2(__hsub2(x, w)));
}

__device__ inline float fold(Partial p) { return __low2float(p) + __high2float(p); }

__global__ void __launch_bounds__(kThreads, 2)
adder_pointwise(const __half* __restrict__ x, const __half* __restrict__ w, float* __restrict__ y)
{
    __shared__ __align__(16) __half sx[2][BM * kPitch];
    __shared__ __align__(16) __half sw[2][BN * kPitch];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const __half* xt = x + (size_t)blockIdx.y * BM * kChannels;
    const __half* wt = w + (size_t)blockIdx.x * BN * kChannels;

    float total[TM][TN] = {};
    stage_rows<BM>(sx[0], xt, 0);
    stage_rows<BN>(sw[0], wt, 0);
    asm volatile("cp.async.commit_group;" ::: "memory");

    for (int c0 = 0; c0 < kChannels; c0 += BC) {
        const int cur = (c0 / BC) & 1;
        if (c0 + BC < kChannels) {
            stage_rows<BM>(sx[cur ^ 1], xt, c0 + BC);
            stage_rows<BN>(sw[cur ^ 1], wt, c0 + BC);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        __syncthreads();

        Partial acc[TM][TN];
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) acc[i][j] = Partial{};

#pragma unroll 1
        for (int q = 0; q < BC; q += 8) {
            __half2 a[TM][4], b[4];
#pragma unroll
            for (int i = 0; i < TM; ++i)
                *reinterpret_cast<uint4*>(a[i]) = *reinterpret_cast<const uint4*>(&sx[cur][(ty + 16 * i) * kPitch + q]);
#pragma unroll
            for (int j = 0; j < TN; ++j) {
                *reinterpret_cast<uint4*>(b) = *reinterpret_cast<const uint4*>(&sw[cur][(tx + 16 * j) * kPitch + q]);
#pragma unroll
                for (int e = 0; e < 4; ++e)
#pragma unroll
                    for (int i = 0; i < TM; ++i) acc[i][j] = add_distance(acc[i][j], a[i][e], b[e]);
            }
        }
#pragma unroll
        for (int i = 0; i < TM; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j) total[i][j] += fold(acc[i][j]);
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
            y[(size_t)(blockIdx.y * BM + ty + 16 * i) * kFilters + blockIdx.x * BN + tx + 16 * j] = -total[i][j];
}

int main()
{
    const uint32_t wsalt = 0x3c6ef372U;
    __half *x, *w;
    float* y;
    CHECK(cudaMalloc(&x, sizeof(__half) * kPixels * kChannels));
    CHECK(cudaMalloc(&w, sizeof(__half) * kFilters * kChannels));
    CHECK(cudaMalloc(&y, sizeof(float) * kPixels * kFilters));
    make_tensor<<<kPixels * kChannels / 256, 256>>>(x, kPixels * kChannels, 0);
    make_tensor<<<kFilters * kChannels / 256, 256>>>(w, kFilters * kChannels, wsalt);
    CHECK(cudaGetLastError());

    const dim3 grid(kFilters / BN, kPixels / BM);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 2; ++i) adder_pointwise<<<grid, kThreads>>>(x, w, y);
    const int iterations = 40;
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < iterations; ++i) adder_pointwise<<<grid, kThreads>>>(x, w, y);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<float> got((size_t)kPixels * kFilters);
    CHECK(cudaMemcpy(got.data(), y, sizeof(float) * got.size(), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 4000; ++s) {
        const uint32_t p = (s * 2654435761U >> 8) % kPixels, k = (s * 40503U + 11) % kFilters;
        double want = 0.0;
        for (uint32_t c = 0; c < kChannels; ++c)
            want -= std::fabs(sample(p * kChannels + c) - sample(k * kChannels + c + wsalt));
        if (!(std::fabs(got[(size_t)p * kFilters + k] - want) <= 2e-3 * std::fabs(want))) {
            printf("response mismatch at pixel %u filter %u: %g, expected %g\n", p, k, got[(size_t)p * kFilters + k], want);
            return 1;
        }
    }
    return 0;
}
