// SPDX-License-Identifier: Apache-2.0
// AdamW update of a shard of fp32 master weights with bf16 gradients; writes the bf16 copy for the next forward pass.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                                              \
    do {                                                                                   \
        cudaError_t e_ = (x);                                                              \
        if (e_ != cudaSuccess) {                                                           \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

namespace optim {

struct Hyper {
    float lr, beta1, beta2, eps, decay, inv_bias1, inv_sqrt_bias2, grad_scale;
};

template <bool Decoupled>
struct AdamRule {
    Hyper h;
    __device__ __forceinline__ float operator()(float p, float g, float& m, float& v) const {
        g *= h.grad_scale;
        if (!Decoupled) g = fmaf(h.decay, p, g);
        m = fmaf(h.beta1, m - g, g);
        v = fmaf(h.beta2, v - g * g, g * g);
        float root;
        asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(v));
        const float den = fmaf(root, h.inv_sqrt_bias2, h.eps);
        const float upd = __fdividef(m * h.inv_bias1, den);
        if (Decoupled) p = fmaf(-h.lr * h.decay, p, p);
        return fmaf(-h.lr, upd, p);
    }
};

__device__ __forceinline__ float2 widen(uint32_t u) {
    return make_float2(__uint_as_float(u << 16), __uint_as_float(u & 0xffff0000u));
}
__device__ __forceinline__ uint32_t narrow(float a, float b) {
    __nv_bfloat162 t = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<uint32_t*>(&t);
}

template <class Rule>
__global__ void __launch_bounds__(256)
    adamw_step(float4* __restrict__ p, float4* __restrict__ m, float4* __restrict__ v, const uint2* __restrict__ g,
               uint2* __restrict__ p16, int n4, Rule rule) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n4) return;
    float4 pp = __ldcs(p + i), mm = __ldcs(m + i), vv = __ldcs(v + i);
    const uint2 gg = __ldcs(g + i);
    const float2 g0 = widen(gg.x), g1 = widen(gg.y);
    pp.x = rule(pp.x, g0.x, mm.x, vv.x);
    pp.y = rule(pp.y, g0.y, mm.y, vv.y);
    pp.z = rule(pp.z, g1.x, mm.z, vv.z);
    pp.w = rule(pp.w, g1.y, mm.w, vv.w);
    __stcs(p + i, pp);
    __stcs(m + i, mm);
    __stcs(v + i, vv);
    __stcs(p16 + i, make_uint2(narrow(pp.x, pp.y), narrow(pp.z, pp.w)));
}

}  // namespace optim

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline float grad_of(size_t i) {  // exact in bf16
    return float(int(mix(uint32_t(i) ^ 0x31415926u) & 255u) - 128) * (1.0f / 1024.0f);
}
__host__ __device__ inline float weight_of(size_t i) { return unit(uint32_t(i)) * 0.2f - 0.1f; }
__global__ void fill(float* p, __nv_bfloat16* g, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        p[i] = weight_of(i);
        g[i] = __float2bfloat16(grad_of(i));
    }
}

int main(int argc, char**) {
    const int n = 40 << 20, iters = 60;
    const bool coupled = argc > 1;
    float *p, *m, *v;
    __nv_bfloat16 *g, *p16;
    CK(cudaMalloc(&p, n * 4ull));
    CK(cudaMalloc(&m, n * 4ull));
    CK(cudaMalloc(&v, n * 4ull));
    CK(cudaMalloc(&g, n * 2ull));
    CK(cudaMalloc(&p16, n * 2ull));
    fill<<<4096, 256>>>(p, g, n);
    CK(cudaMemset(m, 0, n * 4ull));
    CK(cudaMemset(v, 0, n * 4ull));
    const optim::Hyper base{1e-3f, 0.9f, 0.95f, 1e-8f, 0.01f, 0, 0, 0.5f};
    int t = 0;
    auto hyper = [&](int k) {
        optim::Hyper h = base;
        h.inv_bias1 = float(1.0 / (1.0 - std::pow(double(base.beta1), k)));
        h.inv_sqrt_bias2 = float(1.0 / std::sqrt(1.0 - std::pow(double(base.beta2), k)));
        return h;
    };
    auto launch = [&](auto rule) {
        optim::adamw_step<<<n / 4 / 256, 256>>>(reinterpret_cast<float4*>(p), reinterpret_cast<float4*>(m),
                                                reinterpret_cast<float4*>(v), reinterpret_cast<const uint2*>(g),
                                                reinterpret_cast<uint2*>(p16), n / 4, rule);
        CK(cudaGetLastError());
    };
    auto step = [&] {
        ++t;
        if (coupled)
            launch(optim::AdamRule<false>{hyper(t)});
        else
            launch(optim::AdamRule<true>{hyper(t)});
    };
    for (int i = 0; i < 5; ++i) step();
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::vector<float> hp(n);
    std::vector<__nv_bfloat16> h16(n);
    CK(cudaMemcpy(hp.data(), p, n * 4ull, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(h16.data(), p16, n * 2ull, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i += 10007) {
        double w = weight_of(i), mm = 0, vv = 0;
        for (int k = 1; k <= t; ++k) {
            double gr = grad_of(i) * double(base.grad_scale);
            if (coupled) gr += base.decay * w;
            mm = base.beta1 * mm + (1.0 - base.beta1) * gr;
            vv = base.beta2 * vv + (1.0 - base.beta2) * gr * gr;
            double mh = mm / (1.0 - std::pow(double(base.beta1), k)), vh = vv / (1.0 - std::pow(double(base.beta2), k));
            if (!coupled) w -= base.lr * base.decay * w;
            w -= base.lr * mh / (std::sqrt(vh) + base.eps);
        }
        if (!(std::fabs(w - hp[i]) < 2e-4) || !(std::fabs(w - __bfloat162float(h16[i])) < 2e-3)) {
            std::printf("mismatch %d: %g %g vs %g\n", i, hp[i], __bfloat162float(h16[i]), w);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
