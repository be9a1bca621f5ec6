// SPDX-License-Identifier: Apache-2.0
// Calibration of raw camera frames of a survey telescope: dark current, flat field, detector linearity, sky background.  Works on a stack of frames that share one set of masters.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                 \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kWidth = 2048;
constexpr int kHeight = 2048;
constexpr int kPixels = kWidth * kHeight;
constexpr int kFrames = 8;
constexpr int kThreads = 256;
constexpr int kQuads = kPixels / 4;

struct Detector {
    float gain;
    float quadratic;
    float cubic;
    float sky[kFrames];
};

__host__ __device__ inline uint32_t mixed(uint32_t x)
{
    x ^= x >> 17;
    x *= 0xed5ad4bbu;
    x ^= x >> 11;
    x *= 0xac4c1b51u;
    x ^= x >> 15;
    return x;
}
__host__ __device__ inline uint16_t raw_count(uint32_t i) { return 800 + mixed(i) % 40000u; }
__host__ __device__ inline float dark_level(uint32_t p) { return 300.0f + (mixed(p + 1u) & 255u) * 0.125f; }
__host__ __device__ inline float flat_response(uint32_t p) { return 0.9f + (mixed(p + 2u) & 1023u) * (0.2f / 1024.0f); }

__global__ void make_inputs(uint16_t* raw, float* dark, float* inv_flat)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (uint32_t)kPixels * kFrames) raw[i] = raw_count(i);
    if (i < (uint32_t)kPixels) {
        dark[i] = dark_level(i);
        inv_flat[i] = 1.0f / flat_response(i);
    }
}

__device__ inline float linearise(float x, float quadratic, float cubic)
{
    return x * (1.0f + x * (quadratic + x * cubic));
}

__device__ inline float calibrated(float raw, float dark, float inv_flat, const Detector& det, float sky)
{
    const float x = linearise((raw - dark) * inv_flat, det.quadratic, det.cubic);
    return det.gain * x - sky;
}

__global__ void __launch_bounds__(kThreads)
calibrate_frames(const ushort4* __restrict__ raw, const float4* __restrict__ dark,
                 const float4* __restrict__ inv_flat, float4* __restrict__ image, Detector det)
{
    const int q = blockIdx.x * kThreads + threadIdx.x;
    const size_t i = (size_t)blockIdx.y * kQuads + q;
    const float sky = det.sky[blockIdx.y];
    const ushort4 r = raw[i];
    const float4 d = dark[q];
    const float4 f = inv_flat[q];
    image[i] = make_float4(calibrated(r.x, d.x, f.x, det, sky), calibrated(r.y, d.y, f.y, det, sky),
                           calibrated(r.z, d.z, f.z, det, sky), calibrated(r.w, d.w, f.w, det, sky));
}

static void calibrate(const uint16_t* raw, const float* dark, const float* inv_flat, float* image,
                      const Detector& det)
{
    const dim3 grid(kQuads / kThreads, kFrames);
    float4* out = (float4*)image;
    calibrate_frames<<<grid, kThreads>>>((const ushort4*)raw, (const float4*)dark,
                                         (const float4*)inv_flat, out, det);
}

static bool verify(const std::vector<float>& image, const Detector& det)
{
    for (uint32_t n = 0; n < 8192; ++n) {
        const uint32_t i = mixed(n * 31u + 5u) % ((uint32_t)kPixels * kFrames);
        const uint32_t p = i % kPixels;
        double x = ((double)raw_count(i) - dark_level(p)) / flat_response(p);
        x = x * (1.0 + x * (det.quadratic + x * det.cubic));
        x = det.gain * x - det.sky[i / kPixels];
        if (!(std::fabs(image[i] - x) <= 1e-3 * std::fabs(x) + 0.5)) {
            std::fprintf(stderr, "pixel %u: %f, expected %f\n", i, image[i], x);
            return false;
        }
    }
    return true;
}

int main()
{
    uint16_t* raw;
    float *dark, *inv_flat, *image;
    CK(cudaMalloc(&raw, sizeof(uint16_t) * (size_t)kPixels * kFrames));
    CK(cudaMalloc(&dark, sizeof(float) * kPixels));
    CK(cudaMalloc(&inv_flat, sizeof(float) * kPixels));
    CK(cudaMalloc(&image, sizeof(float) * (size_t)kPixels * kFrames));
    make_inputs<<<kPixels * kFrames / 256, 256>>>(raw, dark, inv_flat);
    CK(cudaGetLastError());

    Detector det;
    det.gain = 1.6f;
    det.quadratic = 2.0e-6f;
    det.cubic = -1.0e-11f;
    for (int f = 0; f < kFrames; ++f) det.sky[f] = 150.0f + 10.0f * f;

    calibrate(raw, dark, inv_flat, image, det);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());

    const int iterations = 100;
    cudaEvent_t start, stop;
    CK(cudaEventCreate(&start));
    CK(cudaEventCreate(&stop));
    CK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it) calibrate(raw, dark, inv_flat, image, det);
    CK(cudaEventRecord(stop));
    CK(cudaEventSynchronize(stop));
    CK(cudaGetLastError());
    float ms = 0.0f;
    CK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> host((size_t)kPixels * kFrames);
    CK(cudaMemcpy(host.data(), image, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const bool ok = verify(host, det);
    CK(cudaFree(raw));
    CK(cudaFree(dark));
    CK(cudaFree(inv_flat));
    CK(cudaFree(image));
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
