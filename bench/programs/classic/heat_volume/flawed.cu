// SPDX-License-Identifier: Apache-2.0
// Explicit heat conduction in a wide, shallow slab (seven-point stencil, insulated faces).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define RUN(x)                                                                \
    do {                                                                      \
        if ((x) != cudaSuccess) {                                             \
            std::fprintf(stderr, "failed: %s (line %d)\n", #x, __LINE__);     \
            std::exit(2);                                                     \
        }                                                                     \
    } while (0)

constexpr int kX = 4096, kY = 2048, kZ = 16;
constexpr size_t kPlane = (size_t)kX * kY, kVolume = kPlane * kZ;
constexpr int kTileX = 128, kTileY = 4, kTileZ = 1;
constexpr float kDiff = 0.12f;

__host__ __device__ inline float initial(int x, int y, int z) {
    uint32_t h = (uint32_t)x * 73856093u ^ (uint32_t)y * 19349663u ^ (uint32_t)z * 83492791u;
    h ^= h >> 13;
    h *= 0x5bd1e995u;
    return (float)(h >> 16) * (1.f / 65536.f);
}

__global__ void ignite(float* t) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    t[z * kPlane + (size_t)y * kX + x] = initial(x, y, z);
}

__global__ void __launch_bounds__(kTileX * kTileY * kTileZ) conduct(const float* __restrict__ from, float* __restrict__ to) {
    const int x = blockIdx.x * kTileX + threadIdx.x;
    const int y = blockIdx.y * kTileY + threadIdx.y;
    const int z = blockIdx.z * kTileZ + threadIdx.z;
    const float* at = from + z * kPlane + (size_t)y * kX + x;
    const float c = at[0];
    float sum = at[x > 0 ? -1 : 0] + at[x < kX - 1 ? 1 : 0];
    sum += at[y > 0 ? -kX : 0] + at[y < kY - 1 ? kX : 0];
    sum += at[z > 0 ? -(ptrdiff_t)kPlane : 0] + at[z < kZ - 1 ? (ptrdiff_t)kPlane : 0];
    to[z * kPlane + (size_t)y * kX + x] = fmaf(kDiff, sum - 6.f * c, c);
}

static void step(const float* from, float* to) {
    const dim3 tiles(kX / kTileX, kY / kTileY, kZ / kTileZ);
    conduct<<<tiles, dim3(kTileX, kTileY, kTileZ)>>>(from, to);
}

static float host_step(int x, int y, int z) {
    const float c = initial(x, y, z);
    const float sum = initial(x > 0 ? x - 1 : x, y, z) + initial(x < kX - 1 ? x + 1 : x, y, z) +
                      initial(x, y > 0 ? y - 1 : y, z) + initial(x, y < kY - 1 ? y + 1 : y, z) +
                      initial(x, y, z > 0 ? z - 1 : z) + initial(x, y, z < kZ - 1 ? z + 1 : z);
    return c + kDiff * (sum - 6.f * c);
}

int main() {
    float *a, *b;
    RUN(cudaMalloc(&a, kVolume * sizeof(float)));
    RUN(cudaMalloc(&b, kVolume * sizeof(float)));
    ignite<<<dim3(kX / 256, kY, kZ), 256>>>(a);
    step(a, b);
    RUN(cudaDeviceSynchronize());
    bool ok = true;
    std::vector<float> row(kX);
    for (int z = 0; z < kZ; ++z)
        for (int y = z; y < kY; y += 93) {
            RUN(cudaMemcpy(row.data(), b + z * kPlane + (size_t)y * kX, kX * sizeof(float), cudaMemcpyDeviceToHost));
            for (int x = 0; x < kX; ++x)
                if (!(std::fabs(row[x] - host_step(x, y, z)) < 1e-5f)) ok = false;
        }

    for (int i = 0; i < 4; ++i) {
        step(b, a);
        std::swap(a, b);
    }
    cudaEvent_t tick, tock;
    RUN(cudaEventCreate(&tick));
    RUN(cudaEventCreate(&tock));
    const int steps = 100;
    RUN(cudaEventRecord(tick));
    for (int i = 0; i < steps; ++i) {
        step(b, a);
        std::swap(a, b);
    }
    RUN(cudaEventRecord(tock));
    RUN(cudaEventSynchronize(tock));
    RUN(cudaGetLastError());
    float ms = 0.f;
    RUN(cudaEventElapsedTime(&ms, tick, tock));
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / steps);
    return ok ? 0 : 1;
}
