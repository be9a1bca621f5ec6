// SPDX-License-Identifier: Apache-2.0. Matched-filter detection of micro-earthquakes: 64 templates of 256 samples are
// slid along a continuous seismogram.  Persistent blocks keep the templates in shared
// memory; a thread holds 8 templates x 8 lags in registers and slides a window of the
// seismogram past them four samples at a time.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int TEMPLATES = 64, TAPS = 256;
constexpr int TILE = 256;                        // lags per tile
constexpr int BLOCKS = 264, TILES_PER_BLOCK = 4;
constexpr int LAGS = TILE * BLOCKS * TILES_PER_BLOCK;
constexpr int SPAN = TILE + TAPS + 4;            // samples that a tile looks at, padded
constexpr int SMEM = (TEMPLATES * TAPS + 2 * SPAN) * sizeof(float);

__device__ __forceinline__ void fetch_span(float* dst, const float* src)
{
    for (int c = threadIdx.x; c < SPAN / 4; c += 256) {
        unsigned d = (unsigned)__cvta_generic_to_shared(dst + c * 4);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(src + c * 4) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(256, 2) correlate(const float* __restrict__ trace,
                                                    const float* __restrict__ tmpl,
                                                    float* __restrict__ out)
{
    extern __shared__ __align__(16) float sh[];
    float* s_tmpl = sh;
    float* s_span = sh + TEMPLATES * TAPS;
    const int lane = threadIdx.x & 31, group = (threadIdx.x >> 5) * 8;

    int tile = blockIdx.x;
    fetch_span(s_span, trace + tile * TILE);
    for (int c = threadIdx.x; c < TEMPLATES * TAPS / 4; c += 256)
        ((float4*)s_tmpl)[c] = ((const float4*)tmpl)[c];

    for (int n = 0; n < TILES_PER_BLOCK; ++n, tile += BLOCKS) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        if (n + 1 < TILES_PER_BLOCK)
            fetch_span(s_span + ((n + 1) & 1) * SPAN, trace + (tile + BLOCKS) * TILE);

        const float4* span = (const float4*)(s_span + (n & 1) * SPAN);
        float acc[8][8] = {};
        float win[2][8];
#pragma unroll
        for (int h = 0; h < 2; ++h) *(float4*)&win[h][0] = span[lane + 32 * h];

        for (int k = 0; k < TAPS; k += 4) {
#pragma unroll
            for (int h = 0; h < 2; ++h) *(float4*)&win[h][4] = span[lane + 32 * h + k / 4 + 1];
#pragma unroll
            for (int t = 0; t < 8; ++t) {
                const float4 c4 = *(const float4*)&s_tmpl[(group + t) * TAPS + k];
                const float c[4] = {c4.x, c4.y, c4.z, c4.w};
#pragma unroll
                for (int q = 0; q < 4; ++q)
#pragma unroll
                    for (int j = 0; j < 8; ++j)
                        acc[t][j] = __fadd_rn(acc[t][j], __fmul_rn(c[q], win[j >> 2][(j & 3) + q]));
            }
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int q = 0; q < 4; ++q) win[h][q] = win[h][q + 4];
        }
#pragma unroll
        for (int t = 0; t < 8; ++t)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                __stcs((float4*)(out + (size_t)(group + t) * LAGS + tile * TILE) + lane + 32 * h,
                       make_float4(acc[t][h * 4], acc[t][h * 4 + 1], acc[t][h * 4 + 2], acc[t][h * 4 + 3]));
    }
}

int main()
{
    std::vector<float> ht(LAGS + SPAN), hm(TEMPLATES * TAPS);
    unsigned state = 12345u;
    for (auto& v : ht) {
        state = state * 1664525u + 1013904223u;
        v = (state >> 8) / 16777216.0f - 0.5f;
    }
    for (int t = 0; t < TEMPLATES; ++t)
        for (int k = 0; k < TAPS; ++k)
            hm[t * TAPS + k] = (float)(std::exp(-k / (30.0 + t)) * std::sin(0.05 * k * (1 + 0.1 * t)));
    float *trace, *tmpl, *out;
    CK(cudaMalloc(&trace, ht.size() * sizeof(float)));
    CK(cudaMalloc(&tmpl, hm.size() * sizeof(float)));
    CK(cudaMalloc(&out, (size_t)TEMPLATES * LAGS * sizeof(float)));
    CK(cudaMemcpy(trace, ht.data(), ht.size() * sizeof(float), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(tmpl, hm.data(), hm.size() * sizeof(float), cudaMemcpyHostToDevice));
    CK(cudaFuncSetAttribute(correlate, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));

    for (int i = 0; i < 2; ++i) correlate<<<BLOCKS, 256, SMEM>>>(trace, tmpl, out);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 30;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) correlate<<<BLOCKS, 256, SMEM>>>(trace, tmpl, out);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> ho((size_t)TEMPLATES * LAGS);
    CK(cudaMemcpy(ho.data(), out, ho.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int q = 0; q < 20000; ++q) {
        int t = q % TEMPLATES, n = (int)((q * 7919LL) % LAGS);
        double s = 0;
        for (int k = 0; k < TAPS; ++k) s += (double)hm[t * TAPS + k] * ht[n + k];
        if (std::fabs(s - ho[(size_t)t * LAGS + n]) > 1e-3) {
            printf("mismatch for template %d at lag %d: %f vs %f\n", t, n, ho[(size_t)t * LAGS + n], s);
            return 1;
        }
    }
    return 0;
}
