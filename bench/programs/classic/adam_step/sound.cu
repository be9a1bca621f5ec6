// SPDX-License-Identifier: Apache-2.0
// Optimiser step of a network (AdamW) over one flat parameter buffer.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK_CUDA(x)                                                              \
    do {                                                                           \
        cudaError_t e = (x);                                                       \
        if (e != cudaSuccess) {                                                    \
            std::fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(e));     \
            std::exit(2);                                                          \
        }                                                                          \
    } while (0)

struct Hyper {
    float rate, beta1, beta2, eps, decay;
};

__host__ __device__ inline float gradient_of(uint32_t i) {
    uint32_t h = i * 0x9E3779B1u;
    h ^= h >> 15;
    h *= 0x85EBCA77u;
    h ^= h >> 14;
    return (float)((int)(h >> 8) - (1 << 23)) * (1.f / (1 << 26));
}

__global__ void prepare(float* w, float* g, float* m, float* v, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    w[i] = 0.01f * (float)(i % 201) - 1.f;
    g[i] = gradient_of(i);
    m[i] = 0.f;
    v[i] = 0.f;
}

__device__ __forceinline__ void adam(float& w, float g, float& m, float& v, const Hyper& h, float step, float inv_root) {
    m = fmaf(h.beta1, m, (1.f - h.beta1) * g);
    v = fmaf(h.beta2, v, (1.f - h.beta2) * g * g);
    const float root = sqrtf(v) * inv_root + h.eps;
    w = fmaf(-h.rate * h.decay, w, w) - __fdividef(step * m, root);
}

__global__ void __launch_bounds__(256)
adam_update(float4* __restrict__ w, const float4* __restrict__ g, float4* __restrict__ m, float4* __restrict__ v,
            Hyper h, float step, float inv_root, uint32_t packs) {
    const uint32_t i = blockIdx.x * 256 + threadIdx.x;
    if (i >= packs) return;
    float4 wi = w[i], mi = m[i], vi = v[i];
    const float4 gi = g[i];
    adam(wi.x, gi.x, mi.x, vi.x, h, step, inv_root);
    adam(wi.y, gi.y, mi.y, vi.y, h, step, inv_root);
    adam(wi.z, gi.z, mi.z, vi.z, h, step, inv_root);
    adam(wi.w, gi.w, mi.w, vi.w, h, step, inv_root);
    w[i] = wi;
    m[i] = mi;
    v[i] = vi;
}

int main() {
    const uint32_t n = 1u << 25;
    const Hyper h{1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f};
    float *w, *g, *m, *v;
    for (float** p : {&w, &g, &m, &v}) CHECK_CUDA(cudaMalloc(p, (size_t)n * sizeof(float)));
    prepare<<<n / 256, 256>>>(w, g, m, v, n);
    const uint32_t packs = n / 4;
    auto update = [&](int t) {
        const double c1 = 1.0 - std::pow((double)h.beta1, t), c2 = 1.0 - std::pow((double)h.beta2, t);
        adam_update<<<(packs + 255) / 256, 256>>>((float4*)w, (const float4*)g, (float4*)m, (float4*)v, h,
                                                  (float)(h.rate / c1), (float)(1.0 / std::sqrt(c2)), packs);
    };
    for (int t = 1; t <= 3; ++t) update(t);
    std::vector<float> got(n);
    CHECK_CUDA(cudaMemcpy(got.data(), w, (size_t)n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (uint32_t i = 0; i < n; i += 1021) {
        double x = 0.01f * (float)(i % 201) - 1.f, mm = 0.0, vv = 0.0;
        const double gi = gradient_of(i);
        for (int t = 1; t <= 3; ++t) {
            mm = h.beta1 * mm + (1.0 - h.beta1) * gi;
            vv = h.beta2 * vv + (1.0 - h.beta2) * gi * gi;
            const double mh = mm / (1.0 - std::pow((double)h.beta1, t)), vh = vv / (1.0 - std::pow((double)h.beta2, t));
            x = x - h.rate * h.decay * x - h.rate * mh / (std::sqrt(vh) + h.eps);
        }
        if (!(std::fabs(x - got[i]) < 2e-5)) ok = false;
    }
    cudaEvent_t t0, t1;
    CHECK_CUDA(cudaEventCreate(&t0));
    CHECK_CUDA(cudaEventCreate(&t1));
    const int steps = 150;
    CHECK_CUDA(cudaEventRecord(t0));
    for (int t = 0; t < steps; ++t) update(4 + t);
    CHECK_CUDA(cudaEventRecord(t1));
    CHECK_CUDA(cudaEventSynchronize(t1));
    CHECK_CUDA(cudaGetLastError());
    float ms = 0.f;
    CHECK_CUDA(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / steps);
    return ok ? 0 : 1;
}
