// SPDX-License-Identifier: Apache-2.0
// AdamW update of a flat single-precision parameter vector.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

template <class Launch>
static double time_us(Launch launch, int warm = 20, int reps = 50) {
    for (int i = 0; i < warm; ++i) launch();
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < reps; ++i) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    CUDA_CHECK(cudaEventDestroy(begin));
    CUDA_CHECK(cudaEventDestroy(end));
    return 1e3 * ms / reps;
}

struct Hyper {
    float lr, beta1, beta2, eps, decay, correct1, correct2;
};

__device__ __forceinline__ void update(float& w, float g, float& m, float& v, const Hyper& h) {
    m = fmaf(h.beta1, m - g, g);
    v = fmaf(h.beta2, v - g * g, g * g);
    const float step = __fdividef(m * h.correct1, sqrtf(v * h.correct2) + h.eps);
    w = fmaf(-h.lr, fmaf(h.decay, w, step), w);
}

__global__ void __launch_bounds__(256)
adamw(float4* __restrict__ weight, const float4* __restrict__ grad, float4* __restrict__ mean, float4* __restrict__ var,
      size_t n4, Hyper h) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 w = weight[i], m = mean[i], v = var[i];
    const float4 g = grad[i];
    update(w.x, g.x, m.x, v.x, h);
    update(w.y, g.y, m.y, v.y, h);
    update(w.z, g.z, m.z, v.z, h);
    update(w.w, g.w, m.w, v.w, h);
    weight[i] = w;
    mean[i] = m;
    var[i] = v;
}

__global__ void fill(float* p, size_t n, uint32_t seed, float lo, float hi) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        uint32_t x = (uint32_t)i * 2654435761u + seed;
        x ^= x >> 15;
        x *= 2246822519u;
        p[i] = lo + (hi - lo) * (float)(x >> 8) * (1.f / 16777216.f);
    }
}

int main() {
    const size_t n = (size_t)1 << 26;
    const Hyper h = {1e-4f, 0.9f, 0.999f, 1e-8f, 0.01f, 1.f / (1.f - 0.9f), 1.f / (1.f - 0.999f)};
    float* buf[4];
    for (auto& b : buf) CUDA_CHECK(cudaMalloc(&b, n * sizeof(float)));
    fill<<<1056, 256>>>(buf[0], n, 1u, -0.1f, 0.1f);
    fill<<<1056, 256>>>(buf[1], n, 2u, -1e-2f, 1e-2f);
    fill<<<1056, 256>>>(buf[2], n, 3u, -1e-3f, 1e-3f);
    fill<<<1056, 256>>>(buf[3], n, 4u, 1e-6f, 1e-5f);
    CUDA_CHECK(cudaGetLastError());
    const size_t n4 = n / 4;
    auto step = [&] {
        adamw<<<(unsigned)((n4 + 255) / 256), 256>>>((float4*)buf[0], (const float4*)buf[1], (float4*)buf[2],
                                                     (float4*)buf[3], n4, h);
    };

    const size_t sample = 1 << 16, at = n - sample;
    std::vector<float> before[4], after(sample);
    for (int b = 0; b < 4; ++b) {
        before[b].resize(sample);
        CUDA_CHECK(cudaMemcpy(before[b].data(), buf[b] + at, sample * sizeof(float), cudaMemcpyDeviceToHost));
    }
    step();
    CUDA_CHECK(cudaMemcpy(after.data(), buf[0] + at, sample * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (size_t i = 0; i < sample; ++i) {
        const double g = before[1][i];
        const double m = 0.9 * before[2][i] + 0.1 * g, v = 0.999 * before[3][i] + 0.001 * g * g;
        const double w = before[0][i], s = m * 10.0 / (std::sqrt(v * 1000.0) + 1e-8);
        if (!(std::fabs(w - 1e-4 * (s + 0.01 * w) - after[i]) < 2e-6)) ok = false;
    }
    const double us = time_us(step);
    CUDA_CHECK(cudaMemcpy(after.data(), buf[0] + at, sample * sizeof(float), cudaMemcpyDeviceToHost));
    double checksum = 0.0;
    for (float w : after) checksum += w;
    std::printf("checksum: %.6f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
