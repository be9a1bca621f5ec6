// SPDX-License-Identifier: Apache-2.0. Broadband optical depth from 64 fitted spectral bands: the base-2 logarithm of every
// band's absorption is a polynomial of degree 14 in scaled log-pressure, and the bands
// are summed with their quadrature weights.  A thread keeps 8 points in registers and the coefficients are
// broadcast from shared memory.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int BANDS = 64, TERMS = 16;               // 15 coefficients, then the weight
constexpr int PER_THREAD = 8, THREADS = 256;
constexpr int BLOCKS = 132 * 4 * 4;                 // four full waves of four blocks per SM
constexpr int POINTS = BLOCKS * THREADS * PER_THREAD;

__global__ void make_points(float* x)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= POINTS) return;
    unsigned h = i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    x[i] = 2.0f * ((h & 0xffffff) / 16777215.0f) - 1.0f;
}

__device__ __forceinline__ float exp2_approx(float v)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

__global__ void __launch_bounds__(THREADS, 4) optical_depth(const float4* __restrict__ x,
                                                            const float4* __restrict__ coef,
                                                            float4* __restrict__ tau)
{
    __shared__ float4 table[BANDS][TERMS / 4];
    ((float4*)table)[threadIdx.x] = coef[threadIdx.x];
    static_assert(BANDS * TERMS / 4 == THREADS, "one load per thread");

    const int at = blockIdx.x * THREADS * 2 + threadIdx.x;
    const float4 lo = x[at], hi = x[at + THREADS];
    const float p[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
    float sum[8] = {};
    __syncthreads();

#pragma unroll 2
    for (int b = 0; b < BANDS; ++b) {
        float c[TERMS];
#pragma unroll
        for (int q = 0; q < TERMS / 4; ++q) *(float4*)&c[q * 4] = table[b][q];
        float k[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) k[j] = fmaf(c[0], p[j], c[1]);
#pragma unroll
        for (int t = 2; t < TERMS - 1; ++t)
#pragma unroll
            for (int j = 0; j < 8; ++j) k[j] = fmaf(k[j], p[j], c[t]);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[j] = fmaf(c[TERMS - 1], exp2_approx(k[j]), sum[j]);
    }
    tau[at] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    tau[at + THREADS] = make_float4(sum[4], sum[5], sum[6], sum[7]);
}

int main()
{
    std::vector<float> c(BANDS * TERMS);
    for (int b = 0; b < BANDS; ++b) {
        for (int t = 0; t < TERMS - 1; ++t)
            c[b * TERMS + t] = (float)(std::cos(0.7 * b + 1.3 * t) / (1.0 + (TERMS - 2 - t)));
        c[b * TERMS + TERMS - 1] = (float)((1.0 + std::sin(0.2 * b)) / BANDS);
    }
    float *x, *tau, *coef;
    CK(cudaMalloc(&x, POINTS * sizeof(float)));
    CK(cudaMalloc(&tau, POINTS * sizeof(float)));
    CK(cudaMalloc(&coef, c.size() * sizeof(float)));
    CK(cudaMemcpy(coef, c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice));
    make_points<<<POINTS / 256, 256>>>(x);
    auto step = [&] { optical_depth<<<BLOCKS, THREADS>>>((const float4*)x, (const float4*)coef, (float4*)tau); };
    step();
    step();
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 40;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> hx(POINTS), ho(POINTS);
    CK(cudaMemcpy(hx.data(), x, POINTS * sizeof(float), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(ho.data(), tau, POINTS * sizeof(float), cudaMemcpyDeviceToHost));
    for (int q = 0; q < 5000; ++q) {
        int i = (int)(((long long)q * 65537) % POINTS);
        double s = 0;
        for (int b = 0; b < BANDS; ++b) {
            double k = 0;
            for (int t = 0; t < TERMS - 1; ++t) k = k * hx[i] + c[b * TERMS + t];
            s += c[b * TERMS + TERMS - 1] * std::exp2(k);
        }
        if (std::fabs(s - ho[i]) > 1e-4 * (1.0 + s)) {
            printf("mismatch at point %d: %f vs %f\n", i, ho[i], s);
            return 1;
        }
    }
    return 0;
}
