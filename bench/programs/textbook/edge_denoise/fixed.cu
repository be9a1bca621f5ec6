// SPDX-License-Identifier: Apache-2.0
// Edge-preserving smoothing of a grey image: weights fall with distance and with intensity difference.
#include <algorithm>
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

constexpr int kRadius = 4;
constexpr int kTileX = 32, kTileY = 8;

__device__ __forceinline__ int clamp_to(int v, int n) { return min(max(v, 0), n - 1); }

__global__ void __launch_bounds__(kTileX * kTileY)
smooth(const float* __restrict__ src, float* __restrict__ dst, int width, int height, float inv_space, float inv_range) {
    __shared__ float tile[kTileY + 2 * kRadius][kTileX + 2 * kRadius];
    const int x0 = blockIdx.x * kTileX, y0 = blockIdx.y * kTileY;
    for (int ty = threadIdx.y; ty < kTileY + 2 * kRadius; ty += kTileY)
        for (int tx = threadIdx.x; tx < kTileX + 2 * kRadius; tx += kTileX)
            tile[ty][tx] = src[(size_t)clamp_to(y0 + ty - kRadius, height) * width + clamp_to(x0 + tx - kRadius, width)];
    __syncthreads();

    const float centre = tile[threadIdx.y + kRadius][threadIdx.x + kRadius];
    float sum = 0.f, norm = 0.f;
    for (int dy = -kRadius; dy <= kRadius; ++dy) {
#pragma unroll
        for (int dx = -kRadius; dx <= kRadius; ++dx) {
            const float v = tile[threadIdx.y + kRadius + dy][threadIdx.x + kRadius + dx];
            const float diff = v - centre;
            const float dist2 = (float)(dx * dx + dy * dy) * inv_space + diff * diff * inv_range;
            const float w = expf(-0.5f * dist2);
            sum = fmaf(w, v, sum);
            norm += w;
        }
    }
    const int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
    if (x < width && y < height) dst[(size_t)y * width + x] = sum / norm;
}

int main() {
    const int width = 2048, height = 2048;
    const size_t n = (size_t)width * height;
    std::vector<float> src(n), dst(n);
    uint32_t s = 777u;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            s = s * 1664525u + 1013904223u;
            src[(size_t)y * width + x] = ((x / 61 + y / 47) & 1 ? 0.7f : 0.3f) + (float)(s >> 8) * (0.1f / 16777216.f);
        }
    float *d_src, *d_dst;
    CUDA_CHECK(cudaMalloc(&d_src, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_dst, n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_src, src.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    const float inv_space = 1.f / (2.5f * 2.5f), inv_range = 1.f / (0.12f * 0.12f);
    const dim3 block(kTileX, kTileY), grid((width + kTileX - 1) / kTileX, (height + kTileY - 1) / kTileY);
    const double us = time_us([&] { smooth<<<grid, block>>>(d_src, d_dst, width, height, inv_space, inv_range); });

    CUDA_CHECK(cudaMemcpy(dst.data(), d_dst, n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (size_t i = 11; i < n; i += 4099) {
        const int x = (int)(i % width), y = (int)(i / width);
        double sum = 0.0, norm = 0.0;
        for (int dy = -kRadius; dy <= kRadius; ++dy)
            for (int dx = -kRadius; dx <= kRadius; ++dx) {
                const int yy = std::min(std::max(y + dy, 0), height - 1), xx = std::min(std::max(x + dx, 0), width - 1);
                const double v = src[(size_t)yy * width + xx], d = v - src[i];
                const double w = std::exp(-0.5 * ((dx * dx + dy * dy) * (double)inv_space + d * d * inv_range));
                sum += w * v;
                norm += w;
            }
        if (!(std::fabs(sum / norm - dst[i]) < 1e-4)) ok = false;
    }
    double checksum = 0.0;
    for (float v : dst) checksum += v;
    std::printf("checksum: %.4f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
