// SPDX-License-Identifier: Apache-2.0
// Fully connected layer in half precision: out = relu(act * weight + bias).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

template <class Launch>
static double time_us(Launch launch, int warm = 20, int reps = 50) {
    for (int i = 0; i < warm; ++i) launch();
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < reps; ++i) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    CUDA_CHECK(cudaEventDestroy(begin));
    CUDA_CHECK(cudaEventDestroy(end));
    return 1e3 * ms / reps;
}

constexpr int kTileM = 128, kTileN = 128, kTileK = 32;
constexpr int kThreads = 256;
constexpr int kPitchA = kTileK + 8, kPitchB = kTileN + 8;  // halves

template <int ROWS, int COLS, int PITCH>
__device__ __forceinline__ void load_tile(__half (&tile)[ROWS][PITCH], const __half* __restrict__ src, int stride) {
    constexpr int kPerRow = COLS / 8;
#pragma unroll
    for (int r = 0; r < ROWS * kPerRow / kThreads; ++r) {
        const int i = threadIdx.x + r * kThreads;
        const int row = i / kPerRow, col = i % kPerRow * 8;
        *(uint4*)&tile[row][col] = *(const uint4*)(src + (size_t)row * stride + col);
    }
}

// act: m x k row-major, weight: k x n row-major; sizes are multiples of the tile.
__global__ void __launch_bounds__(kThreads, 2)
linear_relu(const __half* __restrict__ act, const __half* __restrict__ weight, const float* __restrict__ bias,
            __half* __restrict__ out, int m, int n, int k) {
    __shared__ alignas(128) __half a[kTileM][kPitchA];
    __shared__ alignas(128) __half b[kTileK][kPitchB];
    const int m0 = blockIdx.y * kTileM, n0 = blockIdx.x * kTileN;
    const int tx = threadIdx.x % 16 * 4, ty = threadIdx.x / 16 * 4;  // two groups of four rows and columns
    float acc[8][8] = {};
    for (int k0 = 0; k0 < k; k0 += kTileK) {
        load_tile<kTileM, kTileK>(a, act + (size_t)m0 * k + k0, k);
        load_tile<kTileK, kTileN>(b, weight + (size_t)k0 * n + n0, n);
        __syncthreads();
#pragma unroll 4
        for (int kk = 0; kk < kTileK; ++kk) {
            float av[8], bv[8];
#pragma unroll
            for (int r = 0; r < 8; ++r) av[r] = __half2float(a[ty + r % 4 + r / 4 * 64][kk]);
#pragma unroll
            for (int c = 0; c < 8; ++c) bv[c] = __half2float(b[kk][tx + c % 4 + c / 4 * 64]);
#pragma unroll
            for (int r = 0; r < 8; ++r)
#pragma unroll
                for (int c = 0; c < 8; ++c) acc[r][c] = fmaf(av[r], bv[c], acc[r][c]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r)
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            const int row = m0 + ty + r % 4 + r / 4 * 64, col = n0 + tx + c % 4 + c / 4 * 64;
            out[(size_t)row * n + col] = __float2half(fmaxf(acc[r][c] + bias[col], 0.f));
        }
}

int main() {
    const int m = 4096, n = 2048, k = 1024;
    std::vector<__half> act((size_t)m * k), weight((size_t)k * n), out((size_t)m * n);
    std::vector<float> bias(n);
    uint32_t s = 61u;
    auto uniform = [&] {
        s = s * 1664525u + 1013904223u;
        return (float)(s >> 8) * (2.f / 16777216.f) - 1.f;
    };
    for (auto& v : act) v = __float2half(uniform());
    for (auto& v : weight) v = __float2half(0.05f * uniform());
    for (auto& v : bias) v = 0.1f * uniform();
    __half *d_act, *d_weight, *d_out;
    float* d_bias;
    CUDA_CHECK(cudaMalloc(&d_act, act.size() * sizeof(__half)));
    CUDA_CHECK(cudaMalloc(&d_weight, weight.size() * sizeof(__half)));
    CUDA_CHECK(cudaMalloc(&d_out, out.size() * sizeof(__half)));
    CUDA_CHECK(cudaMalloc(&d_bias, n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_act, act.data(), act.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_weight, weight.data(), weight.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_bias, bias.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 grid(n / kTileN, m / kTileM);
    const double us = time_us([&] { linear_relu<<<grid, kThreads>>>(d_act, d_weight, d_bias, d_out, m, n, k); });

    CUDA_CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(__half), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (size_t i = 29; i < out.size(); i += 10007) {
        const int row = (int)(i / n), col = (int)(i % n);
        double sum = bias[col];
        for (int kk = 0; kk < k; ++kk)
            sum += (double)__half2float(act[(size_t)row * k + kk]) * __half2float(weight[(size_t)kk * n + col]);
        sum = sum > 0.0 ? sum : 0.0;
        if (!(std::fabs(sum - __half2float(out[i])) < 4e-3 + 2e-3 * sum)) ok = false;
    }
    double checksum = 0.0;
    for (size_t i = 0; i < out.size(); i += 5) checksum += __half2float(out[i]);
    std::printf("checksum: %.3f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
