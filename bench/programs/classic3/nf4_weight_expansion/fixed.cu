// SPDX-License-Identifier: Apache-2.0. Expands NF4-quantised weights (4-bit normal-float codes, one absmax scale per
// 64 weights) to float32, as done when an adapter is merged into its base model.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr size_t kWeights = size_t(11008) * 4096 * 3;   // gate, up and down projections
constexpr int kGroup = 64;
constexpr int kBlock = 256;
constexpr int kQuads = 4;    // groups of four weights per thread

static const float h_nf4[16] = {
    -1.0f, -0.6961928f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
    0.0795803f, 0.1609302f, 0.2461123f, 0.33791524f, 0.44070983f, 0.562617f, 0.72295684f, 1.0f};

__constant__ float nf4_level[16];

__host__ __device__ inline uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}

__host__ __device__ inline uint16_t code_word(uint32_t i) { return (uint16_t)(mix32(i) >> 7); }
__host__ __device__ inline float group_scale(uint32_t g) { return 0.01f + (mix32(g + 0x9e3779b9U) & 1023) * 1e-4f; }

__global__ void make_weights(uint16_t* codes, float* scales)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kWeights / 4) codes[i] = code_word(i);
    if (i < kWeights / kGroup) scales[i] = group_scale(i);
}

__global__ void __launch_bounds__(kBlock)
expand_nf4(const uint16_t* __restrict__ codes, const float* __restrict__ scales, float4* __restrict__ out)
{
    const uint32_t base = blockIdx.x * (kBlock * kQuads) + threadIdx.x;
    uint32_t word[kQuads];
    float scale[kQuads];
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
        word[q] = codes[base + q * kBlock];
        scale[q] = scales[(base + q * kBlock) / (kGroup / 4)];
    }
    __shared__ float level[16];
    if (threadIdx.x < 16) level[threadIdx.x] = nf4_level[threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < kQuads; ++q) {
        const uint32_t w = word[q];
        float4 v = make_float4(level[w & 15], level[(w >> 4) & 15], level[(w >> 8) & 15], level[w >> 12]);
        v.x *= scale[q];
        v.y *= scale[q];
        v.z *= scale[q];
        v.w *= scale[q];
        out[base + q * kBlock] = v;
    }
}

int main()
{
    static_assert(kWeights % (4 * kBlock * kQuads) == 0, "whole blocks only");
    uint16_t* codes;
    float* scales;
    float4* out;
    CHECK(cudaMalloc(&codes, kWeights / 2));
    CHECK(cudaMalloc(&scales, sizeof(float) * kWeights / kGroup));
    CHECK(cudaMalloc(&out, sizeof(float) * kWeights));
    CHECK(cudaMemcpyToSymbol(nf4_level, h_nf4, sizeof(h_nf4)));
    make_weights<<<(unsigned)((kWeights / 4 + 255) / 256), 256>>>(codes, scales);
    CHECK(cudaGetLastError());

    const unsigned grid = (unsigned)(kWeights / (4 * kBlock * kQuads));
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 2; ++i) expand_nf4<<<grid, kBlock>>>(codes, scales, out);
    const int iterations = 40;
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < iterations; ++i) expand_nf4<<<grid, kBlock>>>(codes, scales, out);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    // compare a few stretches of the expanded tensor
    const uint32_t stretch = 4096;
    std::vector<float4> got(stretch);
    for (int s = 0; s < 32; ++s) {
        uint32_t first = (uint32_t)(mix32(s + 5) % (kWeights / 4 - stretch));
        if (s == 0) first = 0;
        if (s == 1) first = (uint32_t)(kWeights / 4 - stretch);
        CHECK(cudaMemcpy(got.data(), out + first, sizeof(float4) * stretch, cudaMemcpyDeviceToHost));
        for (uint32_t i = 0; i < stretch; ++i) {
            uint32_t w = code_word(first + i);
            float scale = group_scale((first + i) / (kGroup / 4));
            const float v[4] = {got[i].x, got[i].y, got[i].z, got[i].w};
            for (int k = 0; k < 4; ++k) {
                float want = h_nf4[(w >> (4 * k)) & 15] * scale;
                if (!(std::fabs(v[k] - want) <= 1e-6f)) {
                    printf("weight mismatch at %u: %g, expected %g\n", 4 * (first + i) + k, v[k], want);
                    return 1;
                }
            }
        }
    }
    CHECK(cudaFree(codes));
    CHECK(cudaFree(scales));
    CHECK(cudaFree(out));
    return 0;
}
