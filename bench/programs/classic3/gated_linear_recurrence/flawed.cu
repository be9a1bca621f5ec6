// SPDX-License-Identifier: Apache-2.0. Gated linear recurrence (as in minGRU / RG-LRU layers):
//   h[t] = a[t] * h[t-1] + (1 - a[t]) * x[t]
// over [batch][time][channel] activations; a thread carries one channel through time.
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

constexpr int kBatch = 24;
constexpr int kTime = 512;
constexpr int kChannels = 2048;
constexpr int kBlock = 128;

__host__ __device__ inline float unit(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return (float)(x >> 8) * (1.0f / 16777216.0f);
}

__host__ __device__ inline float gate_at(uint32_t i) { return 0.5f + 0.49f * unit(i); }
__host__ __device__ inline float input_at(uint32_t i) { return 2.0f * unit(i + 0x68bc21ebU) - 1.0f; }

__global__ void make_activations(float* a, float* x, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        a[i] = gate_at((uint32_t)i);
        x[i] = input_at((uint32_t)i);
    }
}

__global__ void __launch_bounds__(kBlock)
gated_recurrence(const float* a, const float* x, float* h, int time, int channels)
{
    const int c = blockIdx.x * kBlock + threadIdx.x;
    size_t at = (size_t)blockIdx.y * time * channels + c;
    float state = 0.0f;
#pragma unroll 8
    for (int t = 0; t < time; ++t) {
        const float keep = a[at];
        state = keep * state + (1.0f - keep) * x[at];
        h[at] = state;
        at += channels;
    }
}

int main()
{
    const size_t n = (size_t)kBatch * kTime * kChannels;
    float *a, *x, *h;
    CHECK(cudaMalloc(&a, n * sizeof(float)));
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&h, n * sizeof(float)));
    make_activations<<<(unsigned)((n + 255) / 256), 256>>>(a, x, n);
    CHECK(cudaGetLastError());

    const dim3 grid(kChannels / kBlock, kBatch);
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < 2; ++i) gated_recurrence<<<grid, kBlock>>>(a, x, h, kTime, kChannels);
    const int iterations = 40;
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < iterations; ++i)
        gated_recurrence<<<grid, kBlock>>>(a, x, h, kTime, kChannels);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<float> got(n);
    CHECK(cudaMemcpy(got.data(), h, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 256; ++s) {
        const int b = s % kBatch;
        const int c = (s * 811 + 17) % kChannels;
        double state = 0.0;
        for (int t = 0; t < kTime; ++t) {
            const size_t i = ((size_t)b * kTime + t) * kChannels + c;
            const double keep = gate_at((uint32_t)i);
            state = keep * state + (1.0 - keep) * input_at((uint32_t)i);
            if (!(std::fabs(got[i] - state) <= 1e-4)) {
                printf("state mismatch: batch %d step %d channel %d: %g, expected %g\n", b, t, c, got[i], state);
                return 1;
            }
        }
    }
    CHECK(cudaFree(a));
    CHECK(cudaFree(x));
    CHECK(cudaFree(h));
    return 0;
}
