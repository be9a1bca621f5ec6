// SPDX-License-Identifier: Apache-2.0
// AdamW step on fp32 master weights with bf16 gradients, which also writes the bf16 working copy of the weights.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(call)                                                              \
    do {                                                                           \
        cudaError_t err_ = (call);                                                 \
        if (err_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(2);                                                          \
        }                                                                          \
    } while (0)

[[maybe_unused]] static inline uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
[[maybe_unused]] static inline float unit(uint32_t x) { return (hash32(x) >> 8) * (1.0f / 16777216.0f); }

template <class Step>
static float time_steps(int warm, int iters, Step step)
{
    for (int i = 0; i < warm; ++i) step();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    CUDA_OK(cudaEventCreate(&a));
    CUDA_OK(cudaEventCreate(&b));
    CUDA_OK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CUDA_OK(cudaEventRecord(b));
    CUDA_OK(cudaEventSynchronize(b));
    CUDA_OK(cudaGetLastError());
    float ms = 0.f;
    CUDA_OK(cudaEventElapsedTime(&ms, a, b));
    CUDA_OK(cudaEventDestroy(a));
    CUDA_OK(cudaEventDestroy(b));
    return ms * 1000.f / iters;
}

namespace optim {

constexpr int kThreads = 256;

struct Hyper {
    float beta1, beta2, step_size, inv_sqrt_bias2, eps, decay;
};

template <class G>
struct Gradient;
template <>
struct Gradient<__nv_bfloat16> {
    __device__ static void load(const __nv_bfloat16* p, float (&g)[4])
    {
        const uint2 v = __ldcs(reinterpret_cast<const uint2*>(p));
        g[0] = __uint_as_float(v.x << 16); g[1] = __uint_as_float(v.x & 0xffff0000u);
        g[2] = __uint_as_float(v.y << 16); g[3] = __uint_as_float(v.y & 0xffff0000u);
    }
};
template <>
struct Gradient<float> {
    __device__ static void load(const float* p, float (&g)[4])
    {
        const float4 v = __ldcs(reinterpret_cast<const float4*>(p));
        g[0] = v.x; g[1] = v.y; g[2] = v.z; g[3] = v.w;
    }
};

template <bool Decay>
__device__ __forceinline__ void update(float& w, float& m, float& v, float g, const Hyper& h)
{
    m = fmaf(h.beta1, m - g, g);
    v = fmaf(h.beta2, v - g * g, g * g);
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
    const float den = fmaf(root, h.inv_sqrt_bias2, h.eps);
    if constexpr (Decay) w = fmaf(-h.decay, w, w);
    w = fmaf(-h.step_size, __fdividef(m, den), w);
}

template <class G, bool Decay>
__global__ void __launch_bounds__(kThreads)
adamw_step(float* __restrict__ weight, float* __restrict__ m1, float* __restrict__ m2, const G* __restrict__ grad,
           __nv_bfloat16* __restrict__ working, int n, Hyper h)
{
    const int i = (blockIdx.x * kThreads + threadIdx.x) * 4;
    if (i >= n) return;
    float g[4];
    Gradient<G>::load(grad + i, g);
    float4 w = __ldcs(reinterpret_cast<const float4*>(weight + i));
    float4 m = __ldcs(reinterpret_cast<const float4*>(m1 + i));
    float4 v = __ldcs(reinterpret_cast<const float4*>(m2 + i));
    update<Decay>(w.x, m.x, v.x, g[0], h);
    update<Decay>(w.y, m.y, v.y, g[1], h);
    update<Decay>(w.z, m.z, v.z, g[2], h);
    update<Decay>(w.w, m.w, v.w, g[3], h);
    __stcs(reinterpret_cast<float4*>(weight + i), w);
    __stcs(reinterpret_cast<float4*>(m1 + i), m);
    __stcs(reinterpret_cast<float4*>(m2 + i), v);
    const __nv_bfloat162 lo = __floats2bfloat162_rn(w.x, w.y), hi = __floats2bfloat162_rn(w.z, w.w);
    __stcs(reinterpret_cast<uint2*>(working + i),
           make_uint2(*reinterpret_cast<const uint32_t*>(&lo), *reinterpret_cast<const uint32_t*>(&hi)));
}

template <class G, bool Decay>
void launch(float* w, float* m, float* v, const G* g, __nv_bfloat16* working, int n, const Hyper& h)
{
    adamw_step<G, Decay><<<(n / 4 + kThreads - 1) / kThreads, kThreads>>>(w, m, v, g, working, n, h);
}

}  // namespace optim

int main()
{
    using namespace optim;
    constexpr int kN = 48 * 1024 * 1024, kNorm = 1 << 16, kWarm = 3, kIters = 60;
    std::vector<float> w(kN), got(kN);
    std::vector<__nv_bfloat16> g(kN), work(kN);
    for (int i = 0; i < kN; ++i) {
        const uint32_t a = hash32(i);
        w[i] = ((a & 0xffff) / 65536.f - 0.5f) * 0.2f;
        g[i] = __float2bfloat16(((a >> 16) / 65536.f - 0.5f) * 0.02f);
    }
    float *d_w, *d_m, *d_v, *d_ng; __nv_bfloat16 *d_g, *d_work;
    CUDA_OK(cudaMalloc(&d_w, kN * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_m, kN * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_v, kN * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_ng, kNorm * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_g, kN * sizeof(__nv_bfloat16)));
    CUDA_OK(cudaMalloc(&d_work, kN * sizeof(__nv_bfloat16)));
    CUDA_OK(cudaMemset(d_ng, 0, kNorm * sizeof(float)));
    CUDA_OK(cudaMemset(d_m, 0, kN * sizeof(float)));
    CUDA_OK(cudaMemset(d_v, 0, kN * sizeof(float)));
    CUDA_OK(cudaMemcpy(d_w, w.data(), kN * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_g, g.data(), kN * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));
    const Hyper h{0.9f, 0.95f, 1e-3f, 1.2f, 1e-8f, 1e-4f};

    launch<float, false>(d_w, d_m, d_v, d_ng, d_work, kNorm, Hyper{0.9f, 0.95f, 0.f, 1.2f, 1e-8f, 0.f});
    const float us = time_steps(kWarm, kIters, [&] { launch<__nv_bfloat16, true>(d_w, d_m, d_v, d_g, d_work, kN, h); });

    CUDA_OK(cudaMemcpy(got.data(), d_w, kN * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(work.data(), d_work, kN * sizeof(__nv_bfloat16), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 20000; ++s) {
        const int i = s < 1024 ? kN - 1 - s : static_cast<int>(hash32(s) % kN);
        double x = w[i], m = 0, v = 0;
        const double gr = __bfloat162float(g[i]);
        for (int t = 0; t < kWarm + kIters; ++t) {
            m = h.beta1 * m + (1.0 - h.beta1) * gr;
            v = h.beta2 * v + (1.0 - h.beta2) * gr * gr;
            x -= h.decay * x;
            x -= h.step_size * m / (std::sqrt(v) * h.inv_sqrt_bias2 + h.eps);
        }
        if (!(std::fabs(got[i] - x) <= 2e-4) || !(std::fabs(__bfloat162float(work[i]) - x) <= 2e-3)) {
            std::fprintf(stderr, "parameter %d: got %f, expected %f\n", i, got[i], x);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
