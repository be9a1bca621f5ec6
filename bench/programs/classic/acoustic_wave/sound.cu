// SPDX-License-Identifier: Apache-2.0
// Acoustic wave propagation in a layered medium: second order in time, eighth order in space.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

static void verify(cudaError_t e, int line) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "acoustic_wave line %d: %s\n", line, cudaGetErrorString(e));
    exit(2);
}
#define VERIFY(x) verify((x), __LINE__)

constexpr int kRadius = 4;
constexpr int kInnerX = 6144, kInnerY = 4096;
constexpr int kPitch = kInnerX + 64;                 // 32 zero cells on either side
constexpr int kRows = kInnerY + 2 * kRadius;
constexpr int kTileX = 64, kTileY = 32, kThreadsY = 8;

constexpr float kC0 = -205.f / 72.f, kC1 = 8.f / 5.f, kC2 = -1.f / 5.f, kC3 = 8.f / 315.f, kC4 = -1.f / 560.f;

__host__ __device__ inline size_t cell(int x, int y) { return (size_t)(y + kRadius) * kPitch + x + 32; }
__host__ __device__ inline float speed2(int y) { return y < 1500 ? 0.10f : y < 2800 ? 0.16f : 0.22f; }
__host__ __device__ inline float pulse(int x, int y) {
    const float dx = (x % 512 - 256) * 0.05f, dy = (y % 512 - 256) * 0.05f;
    return expf(-(dx * dx + dy * dy));
}

__global__ void set_up(float* now, float* before, float* medium) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    now[cell(x, y)] = pulse(x, y);
    before[cell(x, y)] = 0.98f * pulse(x, y);
    medium[cell(x, y)] = speed2(y);
}

__global__ void __launch_bounds__(kTileX * kThreadsY)
propagate(const float* __restrict__ now, float* __restrict__ other, const float* __restrict__ medium) {
    __shared__ float tile[kTileY + 2 * kRadius][kTileX + 2 * kRadius];
    const int x0 = blockIdx.x * kTileX, y0 = blockIdx.y * kTileY;
    const int tx = threadIdx.x, ty = threadIdx.y;
#pragma unroll
    for (int r = ty; r < kTileY + 2 * kRadius; r += kThreadsY) {
        const float* row = now + cell(x0 - kRadius, y0 + r - kRadius);
        tile[r][tx] = row[tx];
        if (tx < 2 * kRadius) tile[r][tx + kTileX] = row[tx + kTileX];
    }
    float before[kTileY / kThreadsY], c2[kTileY / kThreadsY];
#pragma unroll
    for (int k = 0; k < kTileY / kThreadsY; ++k) {
        before[k] = other[cell(x0 + tx, y0 + ty + k * kThreadsY)];
        c2[k] = medium[cell(x0 + tx, y0 + ty + k * kThreadsY)];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kTileY / kThreadsY; ++k) {
        const int r = ty + k * kThreadsY + kRadius, c = tx + kRadius;
        const float p = tile[r][c];
        float lap = 2.f * kC0 * p;
        lap = fmaf(kC1, tile[r][c - 1] + tile[r][c + 1] + tile[r - 1][c] + tile[r + 1][c], lap);
        lap = fmaf(kC2, tile[r][c - 2] + tile[r][c + 2] + tile[r - 2][c] + tile[r + 2][c], lap);
        lap = fmaf(kC3, tile[r][c - 3] + tile[r][c + 3] + tile[r - 3][c] + tile[r + 3][c], lap);
        lap = fmaf(kC4, tile[r][c - 4] + tile[r][c + 4] + tile[r - 4][c] + tile[r + 4][c], lap);
        other[cell(x0 + tx, y0 + ty + k * kThreadsY)] = fmaf(c2[k], lap, 2.f * p - before[k]);
    }
}

static double host_now(int x, int y) { return x < 0 || y < 0 || x >= kInnerX || y >= kInnerY ? 0.0 : pulse(x, y); }

int main() {
    const size_t bytes = (size_t)kRows * kPitch * sizeof(float);
    float *now, *other, *medium;
    VERIFY(cudaMalloc(&now, bytes));
    VERIFY(cudaMalloc(&other, bytes));
    VERIFY(cudaMalloc(&medium, bytes));
    VERIFY(cudaMemset(now, 0, bytes));
    VERIFY(cudaMemset(other, 0, bytes));
    set_up<<<dim3(kInnerX / 256, kInnerY), 256>>>(now, other, medium);
    const dim3 grid(kInnerX / kTileX, kInnerY / kTileY), block(kTileX, kThreadsY);
    propagate<<<grid, block>>>(now, other, medium);

    std::vector<float> wave((size_t)kRows * kPitch);
    VERIFY(cudaMemcpy(wave.data(), other, bytes, cudaMemcpyDeviceToHost));
    int bad = 0;
    const double c[5] = {kC0, kC1, kC2, kC3, kC4};
    for (int y = 0; y < kInnerY; y += 13)
        for (int x = y % 29; x < kInnerX; x += 31) {
            double lap = 2.0 * c[0] * host_now(x, y);
            for (int d = 1; d <= 4; ++d)
                lap += c[d] * (host_now(x - d, y) + host_now(x + d, y) + host_now(x, y - d) + host_now(x, y + d));
            const double want = 2.0 * host_now(x, y) - 0.98 * host_now(x, y) + speed2(y) * lap;
            if (!(fabs(want - wave[cell(x, y)]) < 1e-5)) ++bad;
        }

    cudaEvent_t t0, t1;
    VERIFY(cudaEventCreate(&t0));
    VERIFY(cudaEventCreate(&t1));
    std::swap(now, other);
    const int steps = 200;
    VERIFY(cudaEventRecord(t0));
    for (int i = 0; i < steps; ++i) {
        propagate<<<grid, block>>>(now, other, medium);
        std::swap(now, other);
    }
    VERIFY(cudaEventRecord(t1));
    VERIFY(cudaEventSynchronize(t1));
    VERIFY(cudaGetLastError());
    float ms = 0.f;
    VERIFY(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.3f\n", 1e3 * ms / steps);
    return bad ? 1 : 0;
}
