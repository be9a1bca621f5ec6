// SPDX-License-Identifier: Apache-2.0. Causal depthwise convolution over time (width 4), the short filter in front of a
// state-space layer: y[t][d] = bias[d] + sum_j w[j][d] * x[t - 3 + j][d], bf16, [batch][time][channel].
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kBatch = 8, kTime = 4096, kChannels = 4096, kWidth = 4;
constexpr int kVec = 8;            // channels per thread, one 16-byte access
constexpr int kSpan = 16;          // time steps per thread
constexpr int kBlock = 128;

__host__ __device__ inline float sample(uint32_t x)   // multiples of 1/128: exact in bf16
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return (float)((int)(x & 255) - 128) * (1.0f / 128.0f);
}
constexpr uint32_t kWeightSalt = 0xb0000000u, kBiasSalt = 0xc0000000u;

__global__ void make_inputs(__nv_bfloat16* x, float* w, float* bias)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = __float2bfloat16(sample(i));
    if (i < kWidth * kChannels) w[i] = sample(i + kWeightSalt);
    if (i < kChannels) bias[i] = sample(i + kBiasSalt);
}

__device__ inline void unpack(const uint4& v, float* f)
{
    const __nv_bfloat162* p = reinterpret_cast<const __nv_bfloat162*>(&v);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const float2 t = __bfloat1622float2(p[e]);
        f[2 * e] = t.x;
        f[2 * e + 1] = t.y;
    }
}

__global__ void __launch_bounds__(kBlock)
causal_conv(const uint4* __restrict__ x, const float* __restrict__ w, const float* __restrict__ bias, uint4* __restrict__ y)
{
    const int c = blockIdx.x * kBlock + threadIdx.x;          // channel vector
    const int t0 = blockIdx.y * kSpan;
    const size_t row = kChannels / kVec;
    const size_t at = ((size_t)blockIdx.z * kTime + t0) * row + c;

    uint4 raw[kSpan + kWidth - 1];
#pragma unroll
    for (int j = 0; j < kWidth - 1; ++j)
        raw[j] = t0 > 0 ? x[at - (kWidth - 1 - j) * row] : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < kSpan; ++j) raw[kWidth - 1 + j] = x[at + j * row];

    float tap[kWidth][kVec], b[kVec];
#pragma unroll
    for (int e = 0; e < kVec; e += 4) {
        *reinterpret_cast<float4*>(b + e) = *reinterpret_cast<const float4*>(bias + c * kVec + e);
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            *reinterpret_cast<float4*>(tap[j] + e) = *reinterpret_cast<const float4*>(w + j * kChannels + c * kVec + e);
    }
#pragma unroll
    for (int t = 0; t < kSpan; ++t) {
        float acc[kVec], v[kVec];
#pragma unroll
        for (int e = 0; e < kVec; ++e) acc[e] = b[e];
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            unpack(raw[t + j], v);
#pragma unroll
            for (int e = 0; e < kVec; ++e) acc[e] = fmaf(tap[j][e], v[e], acc[e]);
        }
        uint4 packed;
        __nv_bfloat162* p = reinterpret_cast<__nv_bfloat162*>(&packed);
#pragma unroll
        for (int e = 0; e < 4; ++e) p[e] = __floats2bfloat162_rn(acc[2 * e], acc[2 * e + 1]);
        __stcs(y + at + t * row, packed);
    }
}

int main()
{
    const size_t n = (size_t)kBatch * kTime * kChannels;
    __nv_bfloat16 *x, *y;
    float *w, *bias;
    CHECK(cudaMalloc(&x, n * 2));
    CHECK(cudaMalloc(&y, n * 2));
    CHECK(cudaMalloc(&w, sizeof(float) * kWidth * kChannels));
    CHECK(cudaMalloc(&bias, sizeof(float) * kChannels));
    make_inputs<<<(unsigned)(n / 256), 256>>>(x, w, bias);
    CHECK(cudaGetLastError());

    const dim3 grid(kChannels / kVec / kBlock, kTime / kSpan, kBatch);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    const int warmup = 2, iterations = 40;
    for (int i = 0; i < warmup + iterations; ++i) {
        if (i == warmup) CHECK(cudaEventRecord(start));
        causal_conv<<<grid, kBlock>>>(reinterpret_cast<const uint4*>(x), w, bias, reinterpret_cast<uint4*>(y));
    }
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<__nv_bfloat16> got(kChannels);
    for (int s = 0; s < 64; ++s) {
        const int batch = s % kBatch, t = s < 8 ? s : (s * 911 + 3) % kTime;
        const size_t first = ((size_t)batch * kTime + t) * kChannels;
        CHECK(cudaMemcpy(got.data(), y + first, kChannels * 2, cudaMemcpyDeviceToHost));
        for (int d = 0; d < kChannels; ++d) {
            double want = sample(d + kBiasSalt);
            for (int j = 0; j < kWidth; ++j)
                if (t - 3 + j >= 0)
                    want += (double)sample(j * kChannels + d + kWeightSalt) * sample((uint32_t)(first + d - (size_t)(3 - j) * kChannels));
            if (!(std::fabs(__bfloat162float(got[d]) - want) <= 1e-3 + 0.01 * std::fabs(want))) {
                printf("mismatch: batch %d step %d channel %d: %g, expected %g\n", batch, t, d, __bfloat162float(got[d]), want);
                return 1;
            }
        }
    }
    return 0;
}
