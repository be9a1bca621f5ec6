// SPDX-License-Identifier: Apache-2.0. Price and yield sensitivity of an amortising loan over a dense ladder of monthly
// discount factors. The irregular cash flows sit in constant memory; the price and its
// derivative come from one Horner pass, several ladder points per thread.
#include <cstdio>
#include <cstdint>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int MONTHS = 180;
constexpr int POINTS = 1 << 24;
constexpr int PER_THREAD = 8;
constexpr int THREADS = 128;

__constant__ float4 c_flow[MONTHS / 4];      // last month first

__host__ __device__ inline float ladder_point(uint32_t i) {
    uint32_t x = i * 2654435761u;
    x ^= x >> 15; x *= 0x2c1b3c6du;
    x ^= x >> 12;
    return 0.985f + (float)(x >> 8) * (0.0149f / 16777216.0f);
}

static float cash_flow(int month) {
    return 0.4f + 0.25f * std::sin(0.7f * month) + (month % 12 == 11 ? 0.9f : 0.0f) + 0.001f * month;
}

__global__ void fill_ladder(float* d) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (uint32_t)POINTS) d[i] = ladder_point(i);
}

// sum_k flow_k d^k by Horner, together with its derivative in d.
__global__ void __launch_bounds__(THREADS)
price_ladder(const float4* __restrict__ factor, float4* __restrict__ price, float4* __restrict__ slope) {
    const uint32_t base = blockIdx.x * (THREADS * PER_THREAD / 4) + threadIdx.x;
    float d[PER_THREAD], p[PER_THREAD], s[PER_THREAD];
#pragma unroll
    for (int v = 0; v < PER_THREAD / 4; ++v) {
        const float4 f = __ldcs(factor + base + v * THREADS);
        d[4 * v] = f.x;
        d[4 * v + 1] = f.y;
        d[4 * v + 2] = f.z;
        d[4 * v + 3] = f.w;
    }
#pragma unroll
    for (int j = 0; j < PER_THREAD; ++j) p[j] = s[j] = 0.0f;
#pragma unroll 5
    for (int k = 0; k < MONTHS / 4; ++k) {
        const float4 flow = c_flow[k];
        const float c[4] = {flow.x, flow.y, flow.z, flow.w};
#pragma unroll
        for (int m = 0; m < 4; ++m)
#pragma unroll
            for (int j = 0; j < PER_THREAD; ++j) {
                s[j] = fmaf(s[j], d[j], p[j]);
                p[j] = fmaf(p[j], d[j], c[m]);
            }
    }
#pragma unroll
    for (int v = 0; v < PER_THREAD / 4; ++v) {
        __stcs(price + base + v * THREADS, make_float4(p[4 * v], p[4 * v + 1], p[4 * v + 2], p[4 * v + 3]));
        __stcs(slope + base + v * THREADS, make_float4(s[4 * v], s[4 * v + 1], s[4 * v + 2], s[4 * v + 3]));
    }
}

int main() {
    std::vector<float> flow(MONTHS);
    for (int k = 0; k < MONTHS; ++k) flow[k] = cash_flow(MONTHS - 1 - k);
    float *factor, *price, *slope;
    CK(cudaMalloc(&factor, (size_t)POINTS * 4));
    CK(cudaMalloc(&price, (size_t)POINTS * 4));
    CK(cudaMalloc(&slope, (size_t)POINTS * 4));
    CK(cudaMemcpyToSymbol(c_flow, flow.data(), MONTHS * sizeof(float)));
    fill_ladder<<<POINTS / 256, 256>>>(factor);

    const int grid = POINTS / (THREADS * PER_THREAD), iters = 30;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        price_ladder<<<grid, THREADS>>>((const float4*)factor, (float4*)price, (float4*)slope);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> hp(POINTS), hs(POINTS);
    CK(cudaMemcpy(hp.data(), price, (size_t)POINTS * 4, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(hs.data(), slope, (size_t)POINTS * 4, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < (uint32_t)POINTS; i += 1999) {
        const double d = ladder_point(i);
        double p = 0.0, s = 0.0;
        for (int k = 0; k < MONTHS; ++k) {
            s = s * d + p;
            p = p * d + flow[k];
        }
        if (!(std::fabs(hp[i] - p) < 1e-4 * std::fabs(p) && std::fabs(hs[i] - s) < 1e-4 * std::fabs(s))) {
            printf("point %u: %f %f instead of %f %f\n", i, hp[i], hs[i], p, s);
            return 1;
        }
    }
    return 0;
}
