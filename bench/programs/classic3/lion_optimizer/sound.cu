// SPDX-License-Identifier: Apache-2.0. One step of the Lion optimizer (sign of an interpolated momentum, decoupled weight
// decay) over a flat float32 parameter buffer.
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

constexpr uint32_t kParams = 64u << 20;
constexpr int kBlock = 256;

struct Hyper {
    float lr, beta1, beta2, decay;
};

__host__ __device__ inline float sample(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return (float)(x >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

__host__ __device__ inline void lion_update(float& w, float& m, float g, const Hyper& h)
{
    const float c = fmaf(h.beta1, m, (1.0f - h.beta1) * g);
    const float u = c > 0.0f ? 1.0f : (c < 0.0f ? -1.0f : 0.0f);
    w = fmaf(-h.lr, fmaf(h.decay, w, u), w);
    m = fmaf(h.beta2, m, (1.0f - h.beta2) * g);
}

__global__ void make_parameters(float* w, float* m, float* g)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    w[i] = sample(i);
    m[i] = 0.1f * sample(i + 0x20000000u);
    g[i] = 0.1f * sample(i + 0x40000000u);
}

__global__ void __launch_bounds__(kBlock)
lion_step(float4* __restrict__ weights, float4* __restrict__ momentum, const float4* __restrict__ gradient, Hyper h)
{
    const uint32_t i = blockIdx.x * kBlock + threadIdx.x;
    float4 w = weights[i], m = momentum[i];
    const float4 g = gradient[i];
    lion_update(w.x, m.x, g.x, h);
    lion_update(w.y, m.y, g.y, h);
    lion_update(w.z, m.z, g.z, h);
    lion_update(w.w, m.w, g.w, h);
    weights[i] = w;
    momentum[i] = m;
}

int main()
{
    float *w, *m, *g;
    CHECK(cudaMalloc(&w, sizeof(float) * kParams));
    CHECK(cudaMalloc(&m, sizeof(float) * kParams));
    CHECK(cudaMalloc(&g, sizeof(float) * kParams));
    make_parameters<<<kParams / 256, 256>>>(w, m, g);
    CHECK(cudaGetLastError());

    const Hyper h = {1e-4f, 0.9f, 0.99f, 0.1f};
    auto step = [&] {
        lion_step<<<kParams / 4 / kBlock, kBlock>>>(reinterpret_cast<float4*>(w), reinterpret_cast<float4*>(m),
                                                    reinterpret_cast<const float4*>(g), h);
    };
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    const int warmup = 2, iterations = 30;
    for (int i = 0; i < warmup; ++i) step();
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < iterations; ++i) step();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<float> got_w(1024), got_m(1024);
    for (uint32_t s = 0; s < 32; ++s) {
        const uint32_t first = s == 31 ? kParams - 1024 : s * 2097143u % (kParams - 1024);
        CHECK(cudaMemcpy(got_w.data(), w + first, 4096, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(got_m.data(), m + first, 4096, cudaMemcpyDeviceToHost));
        for (uint32_t k = 0; k < 1024; ++k) {
            const uint32_t i = first + k;
            float want_w = sample(i), want_m = 0.1f * sample(i + 0x20000000u);
            const float grad = 0.1f * sample(i + 0x40000000u);
            for (int t = 0; t < warmup + iterations; ++t) lion_update(want_w, want_m, grad, h);
            // a sign may turn where the interpolated momentum passes zero
            if (!(std::fabs(got_w[k] - want_w) <= 2.1f * h.lr && std::fabs(got_m[k] - want_m) <= 1e-6f)) {
                printf("parameter mismatch at %u: %g, expected %g\n", i, got_w[k], want_w);
                return 1;
            }
        }
    }
    CHECK(cudaFree(w));
    CHECK(cudaFree(m));
    CHECK(cudaFree(g));
    return 0;
}
