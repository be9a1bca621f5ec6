// SPDX-License-Identifier: Apache-2.0
// Long vertical smoothing filter over a float image (second pass of a separable blur).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

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

constexpr int kRadius = 32;
constexpr int kTaps = 2 * kRadius + 1;
constexpr int kBlockX = 32, kBlockY = 8;
constexpr int kTileRows = 64;

__constant__ float taps[kTaps];

__global__ void __launch_bounds__(256)
filter_columns(const float* __restrict__ src, float* __restrict__ dst, int width, int height) {
    const int x = blockIdx.x * kBlockX + threadIdx.x;
    const int y0 = blockIdx.y * kTileRows;
    __shared__ float tile[kTileRows + 2 * kRadius][kBlockX];
    for (int r = threadIdx.y; r < kTileRows + 2 * kRadius; r += kBlockY) {
        const int row = min(max(y0 + r - kRadius, 0), height - 1);
        tile[r][threadIdx.x] = src[(size_t)row * width + min(x, width - 1)];
    }
    __syncthreads();
    if (x >= width) return;
    constexpr int kRows = kTileRows / kBlockY;  // consecutive rows a thread
    float sum[kRows] = {};
#pragma unroll
    for (int k = 0; k < kTaps + kRows - 1; ++k) {
        const float v = tile[threadIdx.y * kRows + k][threadIdx.x];
#pragma unroll
        for (int r = 0; r < kRows; ++r)
            if (k - r >= 0 && k - r < kTaps) sum[r] = fmaf(taps[k - r], v, sum[r]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
        const int y = y0 + threadIdx.y * kRows + r;
        if (y < height) dst[(size_t)y * width + x] = sum[r];
    }
}

int main() {
    const int width = 4096, height = 4096;
    const size_t n = (size_t)width * height;
    std::vector<float> weights(kTaps), src(n), dst(n);
    float total = 0.f;
    for (int k = 0; k < kTaps; ++k) total += weights[k] = std::exp(-0.5f * (float)((k - kRadius) * (k - kRadius)) / 144.f);
    for (float& w : weights) w /= total;
    uint32_t s = 4242u;
    for (float& v : src) {
        s = s * 1664525u + 1013904223u;
        v = (float)(s >> 8) * (1.f / 16777216.f);
    }
    float *d_src, *d_dst;
    CUDA_CHECK(cudaMalloc(&d_src, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_dst, n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_src, src.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpyToSymbol(taps, weights.data(), kTaps * sizeof(float)));

    const dim3 block(kBlockX, kBlockY), grid((width + kBlockX - 1) / kBlockX, (height + kTileRows - 1) / kTileRows);
    const double us = time_us([&] { filter_columns<<<grid, block>>>(d_src, d_dst, width, height); });

    CUDA_CHECK(cudaMemcpy(dst.data(), d_dst, n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (size_t i = 17; i < n; i += 5003) {
        const int x = (int)(i % width), y = (int)(i / width);
        double sum = 0.0;
        for (int k = 0; k < kTaps; ++k) {
            int row = y + k - kRadius;
            row = row < 0 ? 0 : row >= height ? height - 1 : row;
            sum += (double)weights[k] * src[(size_t)row * width + x];
        }
        if (!(std::fabs(sum - dst[i]) < 1e-4)) ok = false;
    }
    double checksum = 0.0;
    for (size_t i = 0; i < n; i += 7) checksum += dst[i];
    std::printf("checksum: %.4f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
