// SPDX-License-Identifier: Apache-2.0
// Final stage of an offline renderer's preview path: HDR linear RGB -> display RGBA8. Exposure, a filmic shoulder, a mild saturation grade and the display transfer curve
// are applied per pixel.  The frame is a 4K buffer in linear light.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(x)                                                                   \
    do {                                                                           \
        cudaError_t e_ = (x);                                                      \
        if (e_ != cudaSuccess) {                                                   \
            fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

constexpr int kWidth = 3840;
constexpr int kHeight = 2160;
constexpr int kIterations = 60;

struct Grade {
    float exposure;
    float saturation;
    float whitePoint;
};

__host__ __device__ inline uint32_t hash32(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

// A synthetic scene: smooth sky gradient, plus grain and a few very bright texels.
__host__ __device__ inline float4 scenePixel(uint32_t i) {
    const uint32_t h = hash32(i * 3u + 1u);
    const float grain = (h & 0xffffu) * (1.0f / 65536.0f);
    const float y = (float)(i / kWidth) * (1.0f / kHeight);
    const float boost = (h >> 24) > 250u ? 6.0f : 1.0f;
    float4 p;
    p.x = (0.05f + 0.9f * grain) * boost;
    p.y = (0.10f + 0.6f * y + 0.2f * grain) * boost;
    p.z = (0.20f + 0.5f * (1.0f - y)) * boost;
    p.w = 1.0f;
    return p;
}

__global__ void makeScene(float4* img, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) img[i] = scenePixel(i);
}

// Filmic shoulder with toe (Hable-style rational fit).
__device__ inline float shoulder(float x) {
    const float a = 0.22f, b = 0.30f, c = 0.10f, d = 0.20f, e = 0.01f, f = 0.30f;
    return __fdividef(x * (a * x + c * b) + d * e, x * (a * x + b) + d * f) - e / f;
}

// Linear [0,1] to the display's power-law encoding.
__device__ inline float encodeDisplay(float linear) {
    const float v = __saturatef(linear);
    return pow(v, 1.0 / 2.2);
}

__device__ inline unsigned char quantize(float v) {
    return (unsigned char)(__saturatef(v) * 255.0f + 0.5f);
}

__global__ void __launch_bounds__(256)
tonemapKernel(const float4* __restrict__ hdr, uchar4* __restrict__ ldr, int n, Grade g,
              float invWhite) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 p = hdr[i];

    float r = shoulder(p.x * g.exposure) * invWhite;
    float gr = shoulder(p.y * g.exposure) * invWhite;
    float b = shoulder(p.z * g.exposure) * invWhite;

    const float luma = 0.2126f * r + 0.7152f * gr + 0.0722f * b;
    r = luma + (r - luma) * g.saturation;
    gr = luma + (gr - luma) * g.saturation;
    b = luma + (b - luma) * g.saturation;

    uchar4 o;
    o.x = quantize(encodeDisplay(r));
    o.y = quantize(encodeDisplay(gr));
    o.z = quantize(encodeDisplay(b));
    o.w = 255;
    ldr[i] = o;
}

// ---- host reference -------------------------------------------------------------
static double shoulderRef(double x) {
    const double a = 0.22, b = 0.30, c = 0.10, d = 0.20, e = 0.01, f = 0.30;
    return (x * (a * x + c * b) + d * e) / (x * (a * x + b) + d * f) - e / f;
}

static int encodeRef(double v) {
    v = v < 0 ? 0 : (v > 1 ? 1 : v);
    return (int)(std::pow(v, 1.0 / 2.2) * 255.0 + 0.5);
}

int main() {
    const int n = kWidth * kHeight;
    Grade g{1.6f, 1.12f, 11.2f};
    const float invWhite = (float)(1.0 / shoulderRef(g.whitePoint));

    float4* hdr;
    uchar4* ldr;
    CHECK(cudaMalloc(&hdr, sizeof(float4) * n));
    CHECK(cudaMalloc(&ldr, sizeof(uchar4) * n));
    const int block = 256, grid = (n + block - 1) / block;
    makeScene<<<grid, block>>>(hdr, n);
    CHECK(cudaGetLastError());

    tonemapKernel<<<grid, block>>>(hdr, ldr, n, g, invWhite);
    CHECK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0));
    CHECK(cudaEventCreate(&t1));
    CHECK(cudaEventRecord(t0));
    for (int it = 0; it < kIterations; ++it)
        tonemapKernel<<<grid, block>>>(hdr, ldr, n, g, invWhite);
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.3f\n", ms * 1000.0f / kIterations);

    std::vector<uchar4> out(n);
    CHECK(cudaMemcpy(out.data(), ldr, sizeof(uchar4) * n, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int s = 0; s < 4096; ++s) {
        const uint32_t i = hash32(s + 77u) % (uint32_t)n;
        const float4 p = scenePixel(i);
        double c[3] = {p.x, p.y, p.z};
        for (double& v : c) v = shoulderRef(v * g.exposure) * invWhite;
        const double luma = 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
        const int got[3] = {out[i].x, out[i].y, out[i].z};
        for (int k = 0; k < 3; ++k) {
            const int want = encodeRef(luma + (c[k] - luma) * g.saturation);
            if (std::abs(want - got[k]) > 1) ++bad;
        }
    }
    if (bad) {
        printf("mismatching channels: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
