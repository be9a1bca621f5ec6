// SPDX-License-Identifier: Apache-2.0
// CT volume presentation: maps raw 12-bit detector values through a calibrated presentation curve (several soft-tissue / bone windows blended) and scales the result
// by the slice's exposure factor.  The curve has one entry per raw code.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(call)                                                          \
    do {                                                                       \
        cudaError_t st = (call);                                               \
        if (st != cudaSuccess) {                                               \
            fprintf(stderr, "CUDA error %s at line %d\n",                      \
                    cudaGetErrorString(st), __LINE__);                         \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

namespace ct {

constexpr int kCodes = 4096;
constexpr int kSlicePixels = 512 * 512;
constexpr int kSlices = 192;
constexpr int kThreads = 256;
constexpr int kReps = 50;

__constant__ float g_curve[kCodes];

__host__ __device__ inline uint32_t mix(uint32_t v) {
    v = (v ^ 61u) ^ (v >> 16);
    v *= 9u;
    v ^= v >> 4;
    v *= 0x27d4eb2du;
    v ^= v >> 15;
    return v;
}

// Phantom: concentric tissue shells with photon noise.
__host__ __device__ inline uint16_t phantomCode(uint32_t voxel) {
    const int x = (int)(voxel & 511u) - 256;
    const int y = (int)((voxel >> 9) & 511u) - 256;
    const int r2 = x * x + y * y;
    const int base = r2 < 6000 ? 2900 : (r2 < 30000 ? 1700 : (r2 < 48000 ? 1100 : 500));
    const uint32_t h = mix(voxel);
    const int noise = (int)(h & 255u) + (int)((h >> 8) & 255u) + (int)((h >> 16) & 255u) - 383;
    const int code = base + noise;
    return (uint16_t)(code < 0 ? 0 : (code > kCodes - 1 ? kCodes - 1 : code));
}

__host__ __device__ inline float sliceGain(int slice) {
    return 0.8f + 0.002f * (float)(slice % 200);
}

__global__ void buildPhantom(uint16_t* vol, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) vol[i] = phantomCode(i);
}

// Each thread presents four neighbouring voxels; a slice is a multiple of four.
__global__ void __launch_bounds__(kThreads)
presentVolume(const ushort4* __restrict__ raw, float4* __restrict__ shown, int quads) {
    const int stride = gridDim.x * kThreads;
    for (int q = blockIdx.x * kThreads + threadIdx.x; q < quads; q += stride) {
        const ushort4 code = raw[q];
        const float gain = sliceGain(q / (kSlicePixels / 4));
        float4 v;
        v.x = gain * g_curve[code.x];
        v.y = gain * g_curve[code.y];
        v.z = gain * g_curve[code.z];
        v.w = gain * g_curve[code.w];
        shown[q] = v;
    }
}

static std::vector<float> makeCurve() {
    std::vector<float> c(kCodes);
    for (int i = 0; i < kCodes; ++i) {
        const double soft = 1.0 / (1.0 + std::exp(-(i - 1150.0) / 140.0));
        const double organ = 1.0 / (1.0 + std::exp(-(i - 1750.0) / 60.0));
        const double bone = 1.0 / (1.0 + std::exp(-(i - 2800.0) / 300.0));
        c[i] = (float)(0.35 * soft + 0.25 * organ + 0.40 * bone);
    }
    return c;
}

}  // namespace ct

int main() {
    using namespace ct;
    const uint32_t voxels = (uint32_t)kSlicePixels * kSlices;
    const int quads = (int)(voxels / 4);

    uint16_t* raw = nullptr;
    float* shown = nullptr;
    CUDA_OK(cudaMalloc(&raw, sizeof(uint16_t) * (size_t)voxels));
    CUDA_OK(cudaMalloc(&shown, sizeof(float) * (size_t)voxels));
    buildPhantom<<<(voxels + 255) / 256, 256>>>(raw, voxels);
    CUDA_OK(cudaGetLastError());

    const std::vector<float> curve = makeCurve();
    CUDA_OK(cudaMemcpyToSymbol(g_curve, curve.data(), sizeof(float) * kCodes));

    int dev = 0, sms = 0;
    CUDA_OK(cudaGetDevice(&dev));
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));
    const int grid = sms * 8;

    auto present = [&] {
        presentVolume<<<grid, kThreads>>>(reinterpret_cast<const ushort4*>(raw),
                                          reinterpret_cast<float4*>(shown), quads);
    };
    present();
    CUDA_OK(cudaDeviceSynchronize());

    cudaEvent_t start, stop;
    CUDA_OK(cudaEventCreate(&start));
    CUDA_OK(cudaEventCreate(&stop));
    CUDA_OK(cudaEventRecord(start));
    for (int r = 0; r < kReps; ++r) present();
    CUDA_OK(cudaEventRecord(stop));
    CUDA_OK(cudaEventSynchronize(stop));
    CUDA_OK(cudaGetLastError());
    float ms = 0.0f;
    CUDA_OK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.3f\n", ms * 1000.0 / kReps);

    // Check one scanline of a number of slices against the phantom's definition.
    std::vector<float> line(512);
    int wrong = 0;
    for (int s = 0; s < kSlices; s += 12) {
        const size_t at = (size_t)s * kSlicePixels + (size_t)(37 + s * 2) * 512;
        CUDA_OK(cudaMemcpy(line.data(), shown + at, 512 * sizeof(float), cudaMemcpyDeviceToHost));
        for (int x = 0; x < 512; ++x) {
            const float want = sliceGain(s) * curve[phantomCode((uint32_t)(at + x))];
            if (!(std::fabs(line[x] - want) <= 1e-5f * std::fabs(want) + 1e-7f)) ++wrong;
        }
    }
    CUDA_OK(cudaFree(raw));
    CUDA_OK(cudaFree(shown));
    if (wrong) {
        printf("wrong voxels: %d\n", wrong);
        return 1;
    }
    printf("ok\n");
    return 0;
}
