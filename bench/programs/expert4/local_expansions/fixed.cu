// SPDX-License-Identifier: Apache-2.0
// Evaluates the local expansions of a 2-D fast multipole method: potential and field at the particles of every leaf.
#include <cuda_runtime.h>
#include <complex>
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

__device__ __forceinline__ void cp_async16(void* dst, const void* src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(dst))), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

namespace fmm {

constexpr int kThreads = 256;
constexpr int kPerThread = 4;
constexpr int kLeaf = kThreads * kPerThread;

struct Leaf {
    float cx, cy, inv_radius, unused;
};

struct Complex {
    float re, im;
};

__device__ __forceinline__ Complex horner(Complex acc, Complex z, Complex c)
{
    Complex r;
    r.re = fmaf(acc.re, z.re, fmaf(-acc.im, z.im, c.re));
    r.im = fmaf(acc.re, z.im, fmaf(acc.im, z.re, c.im));
    return r;
}

template <int Order, bool Field>
__global__ void __launch_bounds__(kThreads, 4)
evaluate_local(const float4* __restrict__ position, const Leaf* __restrict__ leaves, const float4* __restrict__ expansion,
               float2* __restrict__ potential, float4* __restrict__ field, int count)
{
    static_assert(Order % 2 == 0 && Order / 2 <= kThreads, "coefficients are copied in pairs");
    constexpr int kPairs = Order / 2;
    __shared__ __align__(16) float4 coef[2][kPairs];

    int leaf = blockIdx.x;
    if (leaf < count && threadIdx.x < kPairs) cp_async16(&coef[0][threadIdx.x], expansion + static_cast<size_t>(leaf) * kPairs + threadIdx.x);
    cp_commit();

    for (int buf = 0; leaf < count; leaf += gridDim.x, buf ^= 1) {
        const size_t base = static_cast<size_t>(leaf) * (kLeaf / 2) + threadIdx.x;
        const Leaf box = leaves[leaf];
        Complex z[kPerThread];
#pragma unroll
        for (int h = 0; h < kPerThread / 2; ++h) {
            const float4 p = __ldcs(position + base + h * kThreads);
            z[2 * h] = {(p.x - box.cx) * box.inv_radius, (p.y - box.cy) * box.inv_radius};
            z[2 * h + 1] = {(p.z - box.cx) * box.inv_radius, (p.w - box.cy) * box.inv_radius};
        }
        cp_wait<0>();
        __syncthreads();
        const int next = leaf + gridDim.x;
        if (next < count && threadIdx.x < kPairs)
            cp_async16(&coef[buf ^ 1][threadIdx.x], expansion + static_cast<size_t>(next) * kPairs + threadIdx.x);
        cp_commit();

        Complex phi[kPerThread], slope[kPerThread];
#pragma unroll
        for (int q = 0; q < kPerThread; ++q) phi[q] = slope[q] = {0.f, 0.f};
#pragma unroll
        for (int k = kPairs - 1; k >= 0; --k) {
            const float4 c = coef[buf][k];
#pragma unroll
            for (int q = 0; q < kPerThread; ++q) {
                if constexpr (Field) slope[q] = horner(slope[q], z[q], phi[q]);
                phi[q] = horner(phi[q], z[q], {c.z, c.w});
                if constexpr (Field) slope[q] = horner(slope[q], z[q], phi[q]);
                phi[q] = horner(phi[q], z[q], {c.x, c.y});
            }
        }
#pragma unroll
        for (int h = 0; h < kPerThread / 2; ++h) {
            __stcs(potential + base + h * kThreads, make_float2(phi[2 * h].re, phi[2 * h + 1].re));
            if constexpr (Field)
                __stcs(field + base + h * kThreads,
                       make_float4(-slope[2 * h].re * box.inv_radius, slope[2 * h].im * box.inv_radius,
                                   -slope[2 * h + 1].re * box.inv_radius, slope[2 * h + 1].im * box.inv_radius));
        }
    }
}

template <int Order, bool Field>
void launch(int sms, const float4* position, const Leaf* leaves, const float4* expansion, float2* potential, float4* field, int count)
{
    static int per_sm = 0;
    if (per_sm == 0)
        CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, evaluate_local<Order, Field>, kThreads, 0));
    evaluate_local<Order, Field><<<sms * per_sm, kThreads>>>(position, leaves, expansion, potential, field, count);
}

}  // namespace fmm

int main()
{
    using namespace fmm;
    constexpr int kOrder = 32, kLeaves = 16896;
    const size_t n = static_cast<size_t>(kLeaves) * kLeaf;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<Leaf> leaves(kLeaves);
    std::vector<float2> pos(n), coef(static_cast<size_t>(kLeaves) * kOrder);
    for (int l = 0; l < kLeaves; ++l) leaves[l] = {(l % 128) * 0.5f, (l / 128) * 0.5f, 2.f, 0.f};
    for (size_t i = 0; i < n; ++i) {
        const Leaf& l = leaves[i / kLeaf];
        const uint32_t h = hash32(static_cast<uint32_t>(i));
        pos[i] = make_float2(l.cx + ((h & 0xffff) / 65536.f - 0.5f) * 0.5f, l.cy + ((h >> 16) / 65536.f - 0.5f) * 0.5f);
    }
    for (size_t i = 0; i < coef.size(); ++i)
        coef[i] = make_float2(unit(static_cast<uint32_t>(2 * i)) - 0.5f, unit(static_cast<uint32_t>(2 * i + 1)) - 0.5f);

    float4 *d_pos, *d_coef, *d_field; float2* d_pot; Leaf* d_leaves;
    CUDA_OK(cudaMalloc(&d_pos, n * sizeof(float2)));
    CUDA_OK(cudaMalloc(&d_coef, coef.size() * sizeof(float2)));
    CUDA_OK(cudaMalloc(&d_field, n * sizeof(float2)));
    CUDA_OK(cudaMalloc(&d_pot, n * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_leaves, kLeaves * sizeof(Leaf)));
    CUDA_OK(cudaMemcpy(d_pos, pos.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_coef, coef.data(), coef.size() * sizeof(float2), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_leaves, leaves.data(), kLeaves * sizeof(Leaf), cudaMemcpyHostToDevice));

    launch<16, false>(sms, d_pos, d_leaves, d_coef, d_pot, d_field, kLeaves);
    const float us = time_steps(3, 60, [&] { launch<kOrder, true>(sms, d_pos, d_leaves, d_coef, d_pot, d_field, kLeaves); });

    std::vector<float> pot(n);
    std::vector<float2> fld(n);
    CUDA_OK(cudaMemcpy(pot.data(), d_pot, n * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(fld.data(), d_field, n * sizeof(float2), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 20000; ++s) {
        const size_t i = s < 1024 ? n - 1 - s : hash32(s) % n;
        const Leaf& l = leaves[i / kLeaf];
        const std::complex<double> z((pos[i].x - static_cast<double>(l.cx)) * l.inv_radius, (pos[i].y - static_cast<double>(l.cy)) * l.inv_radius);
        std::complex<double> p = 0, d = 0;
        for (int k = kOrder - 1; k >= 0; --k) {
            const float2 c = coef[(i / kLeaf) * kOrder + k];
            d = d * z + p;
            p = p * z + std::complex<double>(c.x, c.y);
        }
        if (!(std::fabs(pot[i] - p.real()) <= 1e-3) || !(std::fabs(fld[i].x + d.real() * l.inv_radius) <= 5e-3) ||
            !(std::fabs(fld[i].y - d.imag() * l.inv_radius) <= 5e-3)) {
            std::fprintf(stderr, "particle %zu differs from the reference\n", i);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
