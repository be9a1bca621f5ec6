// SPDX-License-Identifier: Apache-2.0
// Linear layer of a network in half precision: y[m][n] = sum_k x[m][k] * w[k][n], accumulated in float.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

static inline void chk(cudaError_t e, const char* file, int line) {
    if (e == cudaSuccess) return;
    std::fprintf(stderr, "%s:%d: %s\n", file, line, cudaGetErrorString(e));
    std::exit(2);
}
#define CHK(e) chk((e), __FILE__, __LINE__)

constexpr int M = 4096, N = 1024, K = 1024;
constexpr int BM = 64, BN = 64, BK = 32;
constexpr int kThreads = 256;
constexpr int kPadX = BK + 8, kPadW = BN + 8;

__device__ __forceinline__ void stage(const __half* __restrict__ x, const __half* __restrict__ w, __half* xs, __half* ws,
                                      int row0, int col0, int k0) {
    const int xr = threadIdx.x / 4, xc = threadIdx.x % 4 * 8;      // 64 rows of 32
    *(uint4*)(xs + xr * kPadX + xc) = *(const uint4*)(x + (size_t)(row0 + xr) * K + k0 + xc);
    const int wr = threadIdx.x / 8, wc = threadIdx.x % 8 * 8;      // 32 rows of 64
    *(uint4*)(ws + wr * kPadW + wc) = *(const uint4*)(w + (size_t)(k0 + wr) * N + col0 + wc);
}

__global__ void __launch_bounds__(kThreads)
linear(const __half* __restrict__ x, const __half* __restrict__ w, float* __restrict__ y) {
    __shared__ __align__(32) __half xs[BM * kPadX];
    __shared__ __align__(32) __half ws[BK * kPadW];
    const int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    const int ty = threadIdx.x / 16 * 4, tx = threadIdx.x % 16 * 4;
    float acc[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += BK) {
        stage(x, w, xs, ws, row0, col0, k0);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[4], b[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) a[i] = __half2float(xs[(ty + i) * kPadX + k]);
            const float2 b01 = __half22float2(*(const __half2*)(ws + k * kPadW + tx));
            const float2 b23 = __half22float2(*(const __half2*)(ws + k * kPadW + tx + 2));
            b[0] = b01.x; b[1] = b01.y; b[2] = b23.x; b[3] = b23.y;
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        *(float4*)(y + (size_t)(row0 + ty + i) * N + col0 + tx) = make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

int main() {
    std::vector<__half> x((size_t)M * K), w((size_t)K * N);
    std::vector<float> y((size_t)M * N);
    uint32_t s = 99u;
    auto next = [&s] { s = s * 1664525u + 1013904223u; return (float)((int)(s >> 20) - 2048) / 2048.f; };
    for (auto& v : x) v = __float2half(next());
    for (auto& v : w) v = __float2half(next() * 0.25f);
    __half *d_x, *d_w;
    float* d_y;
    CHK(cudaMalloc(&d_x, x.size() * sizeof(__half)));
    CHK(cudaMalloc(&d_w, w.size() * sizeof(__half)));
    CHK(cudaMalloc(&d_y, y.size() * sizeof(float)));
    CHK(cudaMemcpy(d_x, x.data(), x.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CHK(cudaMemcpy(d_w, w.data(), w.size() * sizeof(__half), cudaMemcpyHostToDevice));

    const dim3 grid(N / BN, M / BM);
    cudaEvent_t t0, t1;
    CHK(cudaEventCreate(&t0));
    CHK(cudaEventCreate(&t1));
    for (int i = 0; i < 10; ++i) linear<<<grid, kThreads>>>(d_x, d_w, d_y);
    const int runs = 100;
    CHK(cudaEventRecord(t0));
    for (int i = 0; i < runs; ++i) linear<<<grid, kThreads>>>(d_x, d_w, d_y);
    CHK(cudaEventRecord(t1));
    CHK(cudaEventSynchronize(t1));
    CHK(cudaGetLastError());
    float ms = 0.f;
    CHK(cudaEventElapsedTime(&ms, t0, t1));

    CHK(cudaMemcpy(y.data(), d_y, y.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (size_t at = 7; at < y.size(); at += 6007) {
        const size_t m = at / N, n = at % N;
        double want = 0.0;
        for (int k = 0; k < K; ++k) want += (double)__half2float(x[m * K + k]) * __half2float(w[(size_t)k * N + n]);
        if (!(std::fabs(want - y[at]) < 2e-3)) ok = false;
    }
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / runs);
    return ok ? 0 : 1;
}
