// SPDX-License-Identifier: Apache-2.0. Fractional anisotropy of a diffusion tensor volume.  The six tensor
// components lie in planes; FA follows from the tensor invariants.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr size_t kVoxels = size_t(256) * 256 * 256;

// xx, yy, zz, xy, xz, yz
__host__ __device__ inline float component(uint32_t c, uint32_t voxel)
{
    uint32_t h = voxel * 2654435761u + c * 2246822519u;
    h ^= h >> 15; h *= 0x2c1b3c6du; h ^= h >> 12;
    const float u = (h >> 8) * (1.0f / 16777216.0f);
    return c < 3 ? 0.4f + 1.6f * u : 0.3f * (u - 0.5f);
}

__global__ void scan(float* d)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    for (uint32_t c = 0; c < 6; ++c) d[c * kVoxels + i] = component(c, i);
}

__device__ __forceinline__ float anisotropy(float xx, float yy, float zz, float xy, float xz, float yz)
{
    const float mean = (xx + yy + zz) * (1.0f / 3.0f);
    const float off = 2.0f * (xy * xy + xz * xz + yz * yz);
    const float a = xx - mean, b = yy - mean, c = zz - mean;
    const float dev = a * a + b * b + c * c + off;
    const float norm = xx * xx + yy * yy + zz * zz + off;
    return sqrtf(__fdividef(1.5f * dev, norm + 1e-20f));
}

__global__ void __launch_bounds__(256)
fractional_anisotropy(const float4* __restrict__ d, float4* __restrict__ fa)
{
    constexpr size_t plane = kVoxels / 4;
    const size_t i = size_t(blockIdx.x) * 256 + threadIdx.x;
    const float4 xx = __ldcs(d + i);
    const float4 yy = __ldcs(d + plane + i);
    const float4 zz = __ldcs(d + 2 * plane + i);
    const float4 xy = __ldcs(d + 3 * plane + i);
    const float4 xz = __ldcs(d + 4 * plane + i);
    const float4 yz = __ldcs(d + 5 * plane + i);
    float4 r;
    r.x = anisotropy(xx.x, yy.x, zz.x, xy.x, xz.x, yz.x);
    r.y = anisotropy(xx.y, yy.y, zz.y, xy.y, xz.y, yz.y);
    r.z = anisotropy(xx.z, yy.z, zz.z, xy.z, xz.z, yz.z);
    r.w = anisotropy(xx.w, yy.w, zz.w, xy.w, xz.w, yz.w);
    __stcs(fa + i, r);
}

int main()
{
    float *d, *fa;
    CHECK(cudaMalloc(&d, 6 * kVoxels * sizeof(float)));
    CHECK(cudaMalloc(&fa, kVoxels * sizeof(float)));
    scan<<<kVoxels / 256, 256>>>(d);
    CHECK(cudaGetLastError());

    const int blocks = int(kVoxels / 4 / 256), iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    for (int i = -2; i < iterations; ++i) {
        if (i == 0) CHECK(cudaEventRecord(t0));
        fractional_anisotropy<<<blocks, 256>>>(reinterpret_cast<const float4*>(d),
                                               reinterpret_cast<float4*>(fa));
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float> got(kVoxels);
    CHECK(cudaMemcpy(got.data(), fa, kVoxels * sizeof(float), cudaMemcpyDeviceToHost));
    for (int k = 0; k < 20000; ++k) {
        const uint32_t i = uint32_t((k * 8388617ULL + 5) % kVoxels);
        double t[6];
        for (int c = 0; c < 6; ++c) t[c] = component(c, i);
        const double mean = (t[0] + t[1] + t[2]) / 3.0;
        const double off = 2.0 * (t[3] * t[3] + t[4] * t[4] + t[5] * t[5]);
        double dev = off, norm = off;
        for (int c = 0; c < 3; ++c) { dev += (t[c] - mean) * (t[c] - mean); norm += t[c] * t[c]; }
        const double want = std::sqrt(1.5 * dev / norm);
        if (!(std::fabs(got[i] - want) < 1e-4)) {
            std::printf("voxel %u: %g, expected %g\n", i, got[i], want);
            return 1;
        }
    }
    return 0;
}
