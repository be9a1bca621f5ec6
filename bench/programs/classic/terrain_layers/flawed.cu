// SPDX-License-Identifier: Apache-2.0
// Height-map synthesis: four procedural layers (rolling hills, ridges, cells, dunes) per terrain sample.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

static void guard(cudaError_t e, int line) {
    if (e != cudaSuccess) {
        fprintf(stderr, "terrain: CUDA error '%s' (line %d)\n", cudaGetErrorString(e), line);
        exit(2);
    }
}
#define GUARD(x) guard((x), __LINE__)

enum Layer { Hills = 0, Ridges = 1, Cells = 2, Dunes = 3, LayerCount = 4 };

constexpr int kSide = 2048;
constexpr int kSamples = kSide * 1024;
constexpr int kBlock = 256;

__host__ __device__ inline uint32_t scramble(int x, int y, uint32_t seed) {
    uint32_t h = (uint32_t)x * 0x9E3779B1u ^ (uint32_t)y * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    return h ^ (h >> 15);
}
__host__ __device__ inline float lattice(int x, int y, uint32_t seed) {
    return (float)(scramble(x, y, seed) >> 8) * (1.f / 16777216.f);
}
__host__ __device__ inline float smooth(float t) { return t * t * (3.f - 2.f * t); }

__host__ __device__ inline float value_noise(float x, float y, uint32_t seed) {
    const float fx = floorf(x), fy = floorf(y);
    const int ix = (int)fx, iy = (int)fy;
    const float u = smooth(x - fx), v = smooth(y - fy);
    const float a = lattice(ix, iy, seed), b = lattice(ix + 1, iy, seed);
    const float c = lattice(ix, iy + 1, seed), d = lattice(ix + 1, iy + 1, seed);
    const float top = a + u * (b - a), bottom = c + u * (d - c);
    return top + v * (bottom - top);
}

__host__ __device__ float hills(float x, float y) {
    float sum = 0.f, amp = 0.5f, freq = 1.f;
    for (int o = 0; o < 6; ++o) {
        sum += amp * value_noise(x * freq, y * freq, 11u + o);
        amp *= 0.5f;
        freq *= 2.f;
    }
    return sum;
}
__host__ __device__ float ridges(float x, float y) {
    float sum = 0.f, amp = 0.5f, freq = 0.75f, gain = 1.f;
    for (int o = 0; o < 6; ++o) {
        const float n = 1.f - fabsf(2.f * value_noise(x * freq, y * freq, 101u + o) - 1.f);
        const float w = n * n * gain;
        sum += amp * w;
        gain = fminf(fmaxf(2.f * w, 0.f), 1.f);
        amp *= 0.5f;
        freq *= 2.f;
    }
    return sum;
}
__host__ __device__ float cells(float x, float y) {
    const int ix = (int)floorf(x), iy = (int)floorf(y);
    float first = 9.f, second = 9.f;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx) {
            const float px = ix + dx + lattice(ix + dx, iy + dy, 501u), py = iy + dy + lattice(ix + dx, iy + dy, 502u);
            const float d = (px - x) * (px - x) + (py - y) * (py - y);
            second = fminf(second, fmaxf(first, d));
            first = fminf(first, d);
        }
    return sqrtf(second) - sqrtf(first);
}
__host__ __device__ float dunes(float x, float y) {
    float px = x, py = y, sum = 0.f;
    for (int o = 0; o < 3; ++o) {
        px += 0.6f * value_noise(px, py, 701u + o);
        py += 0.4f * value_noise(py, px, 801u + o);
        const float t = px * (1.f + o);
        sum += fabsf(2.f * (t - floorf(t)) - 1.f) / (1.f + o);
    }
    return sum;
}

__host__ __device__ inline float evaluate(int layer, int sample) {
    const float x = (sample % kSide) * 0.037f, y = (sample / kSide) * 0.041f;
    switch (layer) {
        case Hills: return hills(x, y);
        case Ridges: return ridges(x, y);
        case Cells: return cells(x, y);
        default: return dunes(x, y);
    }
}

__global__ void __launch_bounds__(kBlock) make_layers(float* __restrict__ layers) {
    const int t = blockIdx.x * kBlock + threadIdx.x;
    const int layer = t % LayerCount;
    const int sample = t / LayerCount;
    layers[(size_t)layer * kSamples + sample] = evaluate(layer, sample);
}

__global__ void __launch_bounds__(kBlock) blend(const float* __restrict__ layers, float* __restrict__ height) {
    const int i = blockIdx.x * kBlock + threadIdx.x;
    const float h = layers[i], r = layers[kSamples + i], c = layers[2 * kSamples + i], d = layers[3 * kSamples + i];
    height[i] = 0.4f * h + 0.3f * r + 0.2f * c + 0.1f * d;
}

int main() {
    float *d_layers, *d_height;
    GUARD(cudaMalloc(&d_layers, sizeof(float) * kSamples * LayerCount));
    GUARD(cudaMalloc(&d_height, sizeof(float) * kSamples));
    cudaStream_t stream;
    GUARD(cudaStreamCreate(&stream));
    cudaEvent_t from, to;
    GUARD(cudaEventCreate(&from));
    GUARD(cudaEventCreate(&to));
    const int loops = 200;
    for (int i = -10; i < loops; ++i) {
        if (i == 0) GUARD(cudaEventRecord(from, stream));
        make_layers<<<kSamples * LayerCount / kBlock, kBlock, 0, stream>>>(d_layers);
        blend<<<kSamples / kBlock, kBlock, 0, stream>>>(d_layers, d_height);
    }
    GUARD(cudaEventRecord(to, stream));
    GUARD(cudaStreamSynchronize(stream));
    GUARD(cudaGetLastError());
    float ms;
    GUARD(cudaEventElapsedTime(&ms, from, to));

    std::vector<float> height(kSamples);
    GUARD(cudaMemcpy(height.data(), d_height, sizeof(float) * kSamples, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 3; i < kSamples; i += 997) {
        const float want = 0.4f * evaluate(Hills, i) + 0.3f * evaluate(Ridges, i) + 0.2f * evaluate(Cells, i) +
                           0.1f * evaluate(Dunes, i);
        if (!(fabsf(want - height[i]) < 5e-3f)) ++bad;
    }
    printf("us_per_iteration: %.3f\n", 1e3 * ms / loops);
    return bad ? 1 : 0;
}
