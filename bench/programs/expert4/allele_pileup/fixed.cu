// SPDX-License-Identifier: Apache-2.0
// Computes the reference/alternate log-likelihood ratio and allele count of every site of a sequencing pileup.
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

__device__ __forceinline__ void cp_async16(void* dst, const void* src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(dst))), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

namespace pileup {

constexpr int kQualities = 64;
constexpr int kThreads = 256;

// log10((1 - e) / (e / 3)) for the base error e = 10^(-q/10).
__constant__ float c_quality[kQualities];

template <int Depth>
struct Geometry {
    static constexpr int kDepth = Depth;
    static constexpr int kLanesPerSite = Depth / 16;
    static constexpr int kSitesPerWarp = 32 / kLanesPerSite;
    static_assert(kLanesPerSite >= 1 && kLanesPerSite <= 32, "a site fits in one warp-wide load");
};

template <bool SkipLowQuality>
struct Accumulate {
    const float* table;
    __device__ __forceinline__ float operator()(float sum, uint32_t obs) const
    {
        const uint32_t q = obs & 63u;
        float r = table[q];
        if constexpr (SkipLowQuality) r = q < 6u ? 0.f : r;
        return sum + __uint_as_float(__float_as_uint(r) ^ ((obs & 64u) << 25));
    }
};

template <class G, int Stages, bool SkipLowQuality>
__global__ void __launch_bounds__(kThreads)
pileup_likelihoods(const uint4* __restrict__ obs, float2* __restrict__ out, int vectors)
{
    __shared__ uint4 ring[Stages][kThreads];
    __shared__ float quality[kQualities];
    if (threadIdx.x < kQualities) quality[threadIdx.x] = c_quality[threadIdx.x];
    __syncthreads();
    const Accumulate<SkipLowQuality> accumulate{quality};
    const int stride = gridDim.x * kThreads;
    int head = blockIdx.x * kThreads + threadIdx.x;
    int at = head;
#pragma unroll
    for (int s = 0; s < Stages - 1; ++s, head += stride) {
        if (head < vectors) cp_async16(&ring[s][threadIdx.x], obs + head);
        cp_commit();
    }
    int slot = 0;
    for (; at < vectors; at += stride, head += stride) {
        cp_wait<Stages - 2>();
        const uint4 v = ring[slot][threadIdx.x];
        const int fill = slot == 0 ? Stages - 1 : slot - 1;
        if (head < vectors) cp_async16(&ring[fill][threadIdx.x], obs + head);
        cp_commit();
        slot = slot + 1 == Stages ? 0 : slot + 1;

        float part[4] = {0.f, 0.f, 0.f, 0.f};
        const uint32_t word[4] = {v.x, v.y, v.z, v.w};
        int alt = 0;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            alt += __popc(word[w] & 0x40404040u);
#pragma unroll
            for (int b = 0; b < 4; ++b) part[b] = accumulate(part[b], word[w] >> (8 * b));
        }
        float ratio = (part[0] + part[1]) + (part[2] + part[3]);
#pragma unroll
        for (int d = G::kLanesPerSite / 2; d > 0; d >>= 1) {
            ratio += __shfl_xor_sync(0xffffffffu, ratio, d);
            alt += __shfl_xor_sync(0xffffffffu, alt, d);
        }
        if (threadIdx.x % G::kLanesPerSite == 0) out[at / G::kLanesPerSite] = make_float2(ratio, static_cast<float>(alt));
    }
}

template <class G, bool SkipLowQuality>
void launch(int sms, const uint4* obs, float2* out, int sites)
{
    constexpr int kStages = 4;
    static int per_sm = 0;
    if (per_sm == 0)
        CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, pileup_likelihoods<G, kStages, SkipLowQuality>, kThreads, 0));
    pileup_likelihoods<G, kStages, SkipLowQuality><<<sms * per_sm, kThreads>>>(obs, out, sites * G::kLanesPerSite);
}

}  // namespace pileup

int main()
{
    using namespace pileup;
    using Wgs = Geometry<128>;
    using Exome = Geometry<256>;
    constexpr int kSites = 2 * 1024 * 1024;
    const size_t n = static_cast<size_t>(kSites) * Wgs::kDepth;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<uint8_t> obs(n);
    for (size_t i = 0; i < n; ++i) {
        const uint32_t h = hash32(static_cast<uint32_t>(i));
        obs[i] = static_cast<uint8_t>((2u + (h & 0xffffu) % 40u) | (((h >> 16) & 7u) == 0u ? 64u : 0u));
    }
    float table[kQualities];
    for (int q = 0; q < kQualities; ++q) {
        const double e = std::fmin(0.75, std::pow(10.0, -q / 10.0));
        table[q] = static_cast<float>(std::log10((1 - e) * 3 / e));
    }
    CUDA_OK(cudaMemcpyToSymbol(c_quality, table, sizeof(table)));
    uint4* d_obs; float2* d_out;
    CUDA_OK(cudaMalloc(&d_obs, n));
    CUDA_OK(cudaMalloc(&d_out, kSites * sizeof(float2)));
    CUDA_OK(cudaMemcpy(d_obs, obs.data(), n, cudaMemcpyHostToDevice));

    launch<Exome, true>(sms, d_obs, d_out, kSites / 2);
    const float us = time_steps(3, 60, [&] { launch<Wgs, false>(sms, d_obs, d_out, kSites); });

    std::vector<float2> got(kSites);
    CUDA_OK(cudaMemcpy(got.data(), d_out, kSites * sizeof(float2), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 8192; ++s) {
        const int site = s < 64 ? kSites - 1 - s : static_cast<int>(hash32(s) % kSites);
        double ratio = 0;
        int alt = 0;
        for (int d = 0; d < Wgs::kDepth; ++d) {
            const uint8_t o = obs[static_cast<size_t>(site) * Wgs::kDepth + d];
            ratio += o & 64 ? -table[o & 63] : table[o & 63];
            alt += o >> 6 & 1;
        }
        if (!(std::fabs(got[site].x - ratio) <= 1e-2) || got[site].y != static_cast<float>(alt)) {
            std::fprintf(stderr, "site %d: got %f %f, expected %f %d\n", site, got[site].x, got[site].y, ratio, alt);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
