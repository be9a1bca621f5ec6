// SPDX-License-Identifier: Apache-2.0
// Two-dimensional DCT-II of 32 x 32 blocks, the transform stage of an image coder.
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

constexpr int kBlock = 32;
constexpr int kPitch = 33;
constexpr int kRowsPerThread = 4;
constexpr int kThreadRows = kBlock / kRowsPerThread;

__global__ void __launch_bounds__(kBlock * kThreadRows)
forward_dct(const float* __restrict__ image, float* __restrict__ coeffs, const float* __restrict__ table, int width) {
    __shared__ float basis[kBlock][kPitch];
    __shared__ float pixels[kBlock][kBlock];
    __shared__ float half_way[kBlock][kBlock];

    const int x = threadIdx.x, y = threadIdx.y;
    const size_t origin = (size_t)blockIdx.y * kBlock * width + (size_t)blockIdx.x * kBlock;
#pragma unroll
    for (int r = 0; r < kRowsPerThread; ++r) {
        const int row = y + r * kThreadRows;
        basis[row][x] = table[row * kBlock + x];
        pixels[row][x] = image[origin + (size_t)row * width + x];
    }
    __syncthreads();

    // Down the columns: half_way = basis * pixels.
    float acc[kRowsPerThread] = {};
#pragma unroll 8
    for (int k = 0; k < kBlock; ++k) {
        const float p = pixels[k][x];
#pragma unroll
        for (int r = 0; r < kRowsPerThread; ++r) acc[r] = fmaf(basis[y + r * kThreadRows][k], p, acc[r]);
    }
#pragma unroll
    for (int r = 0; r < kRowsPerThread; ++r) half_way[y + r * kThreadRows][x] = acc[r];
    __syncthreads();

    // Along the rows: coeffs = half_way * transpose(basis).
    float res[kRowsPerThread] = {};
#pragma unroll 8
    for (int k = 0; k < kBlock; ++k) {
        const float b = basis[x][k];
#pragma unroll
        for (int r = 0; r < kRowsPerThread; ++r) res[r] = fmaf(half_way[y + r * kThreadRows][k], b, res[r]);
    }
#pragma unroll
    for (int r = 0; r < kRowsPerThread; ++r)
        coeffs[origin + (size_t)(y + r * kThreadRows) * width + x] = res[r];
}

int main() {
    const int width = 4096, height = 4096;
    const size_t n = (size_t)width * height;
    std::vector<float> table(kBlock * kBlock), image(n), got(n);
    for (int k = 0; k < kBlock; ++k)
        for (int i = 0; i < kBlock; ++i)
            table[k * kBlock + i] = (float)(std::sqrt((k == 0 ? 1.0 : 2.0) / kBlock) *
                                            std::cos(M_PI * (2 * i + 1) * k / (2.0 * kBlock)));
    uint32_t s = 12345u;
    for (size_t i = 0; i < n; ++i) {
        s = s * 1664525u + 1013904223u;
        image[i] = (float)(s >> 24) - 128.f;
    }
    float *d_image, *d_coeffs, *d_table;
    CUDA_CHECK(cudaMalloc(&d_image, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_coeffs, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_table, table.size() * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_image, image.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_table, table.data(), table.size() * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 grid(width / kBlock, height / kBlock), block(kBlock, kThreadRows);
    const double us = time_us([&] { forward_dct<<<grid, block>>>(d_image, d_coeffs, d_table, width); });

    CUDA_CHECK(cudaMemcpy(got.data(), d_coeffs, n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int by = 0; by < height / kBlock; by += 41)
        for (int bx = 3; bx < width / kBlock; bx += 37) {
            const size_t o = (size_t)by * kBlock * width + (size_t)bx * kBlock;
            for (int u = 0; u < kBlock; u += 5)
                for (int v = 0; v < kBlock; v += 3) {
                    double sum = 0.0;
                    for (int i = 0; i < kBlock; ++i)
                        for (int j = 0; j < kBlock; ++j)
                            sum += (double)table[u * kBlock + i] * image[o + (size_t)i * width + j] * table[v * kBlock + j];
                    if (!(std::fabs(sum - got[o + (size_t)u * width + v]) < 0.05)) ok = false;
                }
        }
    double checksum = 0.0;
    for (size_t i = 0; i < n; i += 1021) checksum += std::fabs(got[i]);
    std::printf("checksum: %.4f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
