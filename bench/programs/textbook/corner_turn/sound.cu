// SPDX-License-Identifier: Apache-2.0
// Corner turn (transposition) of a radar data matrix: pulses x range bins to range bins x pulses.
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

constexpr int kTile = 32, kRows = 8;

__global__ void __launch_bounds__(kTile * kRows)
corner_turn(const float2* __restrict__ in, float2* __restrict__ out, int pulses, int bins) {
    __shared__ float2 tile[kTile][kTile + 1];
    int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
#pragma unroll
    for (int r = 0; r < kTile; r += kRows) tile[threadIdx.y + r][threadIdx.x] = in[(size_t)(y + r) * bins + x];
    __syncthreads();
    x = blockIdx.y * kTile + threadIdx.x;
    y = blockIdx.x * kTile + threadIdx.y;
#pragma unroll
    for (int r = 0; r < kTile; r += kRows) out[(size_t)(y + r) * pulses + x] = tile[threadIdx.x][threadIdx.y + r];
}

__global__ void make_echoes(float2* v, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        v[i] = make_float2((float)(i & 0xffffff), (float)((i * 7) & 0xffffff));
}

int main() {
    const int pulses = 4096, bins = 16384;
    const size_t n = (size_t)pulses * bins;
    float2 *in, *out;
    CUDA_CHECK(cudaMalloc(&in, n * sizeof(float2)));
    CUDA_CHECK(cudaMalloc(&out, n * sizeof(float2)));
    make_echoes<<<1056, 256>>>(in, n);
    CUDA_CHECK(cudaGetLastError());

    const dim3 grid(bins / kTile, pulses / kTile), block(kTile, kRows);
    const double us = time_us([&] { corner_turn<<<grid, block>>>(in, out, pulses, bins); });

    std::vector<float2> row(pulses);
    bool ok = true;
    double checksum = 0.0;
    for (int b = 9; b < bins; b += 127) {
        CUDA_CHECK(cudaMemcpy(row.data(), out + (size_t)b * pulses, pulses * sizeof(float2), cudaMemcpyDeviceToHost));
        for (int p = 0; p < pulses; ++p) {
            const size_t i = (size_t)p * bins + b;
            if (row[p].x != (float)(i & 0xffffff) || row[p].y != (float)((i * 7) & 0xffffff)) ok = false;
            checksum += row[p].x + row[p].y;
        }
    }
    std::printf("checksum: %.1f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
