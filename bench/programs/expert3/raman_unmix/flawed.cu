// SPDX-License-Identifier: Apache-2.0. Spectral unmixing of a Raman image: every pixel has a 256-band spectrum and
// is projected on three component spectra (lipid, protein, water).
// Persistent warps, each with a private ring of spectra in shared memory.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kBands = 256, kPixels = 512 * 768, kComponents = 3;
constexpr int kWarps = 8, kDepth = 8;
constexpr int kRingBytes = kWarps * kDepth * kBands * sizeof(float);

__host__ __device__ inline float intensity(uint32_t pixel, uint32_t band)
{
    uint32_t h = pixel * 2654435761u ^ band * 2246822519u;
    h ^= h >> 15; h *= 0x2c1b3c6du; h ^= h >> 12;
    return (h >> 8) * (1.0f / 16777216.0f);
}

__global__ void synthesise(float* cube)
{
    cube[size_t(blockIdx.x) * kBands + threadIdx.x] = intensity(blockIdx.x, threadIdx.x);
}

__device__ __forceinline__ void copy16(void* dst, const void* src)
{
    const uint32_t d = uint32_t(__cvta_generic_to_shared(dst));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(d), "l"(src) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_pending()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory");
}

__device__ __forceinline__ float dot4(float4 a, float4 b, float s)
{
    return fmaf(a.x, b.x, fmaf(a.y, b.y, fmaf(a.z, b.z, fmaf(a.w, b.w, s))));
}

__global__ void __launch_bounds__(kWarps * 32, 1)
unmix(const float* __restrict__ cube, const float* __restrict__ basis, float* __restrict__ weight)
{
    extern __shared__ float4 ring[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int stride = gridDim.x * kWarps;
    float4* mine = ring + warp * kDepth * (kBands / 4);

    // lane l keeps bands 4l..4l+3 and 128+4l..128+4l+3 of every component
    float4 lo[kComponents], hi[kComponents];
#pragma unroll
    for (int c = 0; c < kComponents; ++c) {
        const float4* b = reinterpret_cast<const float4*>(basis + c * kBands);
        lo[c] = b[lane];
        hi[c] = b[32 + lane];
    }

    auto fetch = [&](int pixel, int slot) {
        if (pixel < kPixels) {
            const float4* src = reinterpret_cast<const float4*>(cube + size_t(pixel) * kBands);
            copy16(mine + slot * 64 + lane, src + lane);
            copy16(mine + slot * 64 + 32 + lane, src + 32 + lane);
        }
        commit();
    };

    int ahead = blockIdx.x * kWarps + warp;
    int pixel = ahead;
#pragma unroll
    for (int s = 0; s < kDepth - 1; ++s, ahead += stride) fetch(ahead, s);

    int slot = 0;
    for (; pixel < kPixels; pixel += stride, ahead += stride) {
        wait_pending<0>();
        __syncwarp();
        fetch(ahead, (slot + kDepth - 1) % kDepth);

        const float4 x = mine[slot * 64 + lane], y = mine[slot * 64 + 32 + lane];
        float sum[kComponents];
#pragma unroll
        for (int c = 0; c < kComponents; ++c) sum[c] = dot4(x, lo[c], dot4(y, hi[c], 0.0f));
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) {
#pragma unroll
            for (int c = 0; c < kComponents; ++c) sum[c] += __shfl_xor_sync(~0u, sum[c], d);
        }
        if (lane < kComponents)
            weight[size_t(pixel) * kComponents + lane] = lane == 0 ? sum[0] : lane == 1 ? sum[1] : sum[2];
        slot = (slot + 1) % kDepth;
    }
}

int main()
{
    int sms;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<float> h_basis(kComponents * kBands);
    for (int c = 0; c < kComponents; ++c)
        for (int b = 0; b < kBands; ++b)
            h_basis[c * kBands + b] = std::exp(-0.001f * (b - 60 * (c + 1)) * (b - 60 * (c + 1)));

    float *cube, *basis, *weight;
    CHECK(cudaMalloc(&cube, size_t(kPixels) * kBands * sizeof(float)));
    CHECK(cudaMalloc(&basis, h_basis.size() * sizeof(float)));
    CHECK(cudaMalloc(&weight, size_t(kPixels) * kComponents * sizeof(float)));
    CHECK(cudaMemcpy(basis, h_basis.data(), h_basis.size() * sizeof(float), cudaMemcpyHostToDevice));
    synthesise<<<kPixels, kBands>>>(cube);
    CHECK(cudaFuncSetAttribute(unmix, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));
    for (int i = 0; i < 2; ++i) unmix<<<sms, kWarps * 32, kRingBytes>>>(cube, basis, weight);
    CHECK(cudaDeviceSynchronize());

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    CHECK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) unmix<<<sms, kWarps * 32, kRingBytes>>>(cube, basis, weight);
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float> got(size_t(kPixels) * kComponents);
    CHECK(cudaMemcpy(got.data(), weight, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int k = 0; k < 3000; ++k) {
        const int p = k < 3 ? kPixels - 1 - k : int((k * 7919LL) % kPixels);
        for (int c = 0; c < kComponents; ++c) {
            double want = 0.0;
            for (int b = 0; b < kBands; ++b) want += double(intensity(p, b)) * h_basis[c * kBands + b];
            if (!(std::fabs(got[size_t(p) * kComponents + c] - want) <= 1e-3 + 1e-4 * want)) {
                std::printf("pixel %d component %d: %g, expected %g\n", p, c,
                            got[size_t(p) * kComponents + c], want);
                return 1;
            }
        }
    }
    return 0;
}
