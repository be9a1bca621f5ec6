// SPDX-License-Identifier: Apache-2.0. Template amplitude and chi-square for a catalogue of galaxy spectra.  The spectra
// stream once from memory through a ring of bulk (TMA) copies with full/empty
// mbarriers; a warp fits one spectrum of the tile, the template being in registers.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cstdint>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int PIX = 1024, WARPS = 8, STAGES = 3;
constexpr int BLOCKS = 264, TILES = BLOCKS * 64, SPECTRA = TILES * WARPS;
constexpr uint32_t TILE_BYTES = WARPS * PIX * sizeof(float);
constexpr int SMEM = STAGES * TILE_BYTES;

__global__ void make_spectra(float* s)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= (size_t)SPECTRA * PIX) return;
    unsigned p = (unsigned)(i % PIX), g = (unsigned)(i / PIX), h = (unsigned)i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    s[i] = (1.0f + 0.01f * (g % 97)) * (1.0f + 0.3f * __sinf(0.02f * p)) + 0.2f * ((h & 0xffff) / 65535.0f - 0.5f);
}
__device__ __forceinline__ uint32_t addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint64_t* b, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(addr(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* b, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra W;\n}" ::"r"(addr(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_load(void* dst, const void* src, uint64_t* b)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(addr(b)), "r"(TILE_BYTES) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(addr(dst)), "l"(src), "r"(TILE_BYTES), "r"(addr(b)) : "memory");
}

__global__ void __launch_bounds__((WARPS + 1) * 32, 2) fit(const float* __restrict__ spectra,
                                                           const float4* __restrict__ tmpl,
                                                           float inv_norm, float2* __restrict__ out)
{
    extern __shared__ __align__(128) float ring[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full + s, 1);
            bar_init(empty + s, WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    int stage = 0, phase = 0;
    if (warp == WARPS) {
        if (lane != 0) return;
        for (int tile = blockIdx.x; tile < TILES; tile += BLOCKS) {
            bar_wait(empty + stage, phase ^ 1);
            bulk_load(ring + stage * WARPS * PIX, spectra + (size_t)tile * WARPS * PIX, full + stage);
            if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
        return;
    }
    float4 m[PIX / 128];
#pragma unroll
    for (int k = 0; k < PIX / 128; ++k) m[k] = tmpl[k * 32 + lane];
    for (int tile = blockIdx.x; tile < TILES; tile += BLOCKS) {
        bar_wait(full + stage, phase);
        const float4* x = (const float4*)(ring + (stage * WARPS + warp) * PIX);
        float xm0 = 0, xm1 = 0, xx0 = 0, xx1 = 0;
#pragma unroll
        for (int k = 0; k < PIX / 128; ++k) {
            const float4 v = x[k * 32 + lane];
            xm0 = fmaf(v.x, m[k].x, xm0); xm1 = fmaf(v.y, m[k].y, xm1);
            xm0 = fmaf(v.z, m[k].z, xm0); xm1 = fmaf(v.w, m[k].w, xm1);
            xx0 = fmaf(v.x, v.x, xx0); xx1 = fmaf(v.y, v.y, xx1);
            xx0 = fmaf(v.z, v.z, xx0); xx1 = fmaf(v.w, v.w, xx1);
        }
        __syncwarp();
        if (lane == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(addr(empty + stage)) : "memory");
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
        float xm = xm0 + xm1, xx = xx0 + xx1;
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) {
            xm += __shfl_xor_sync(0xffffffffu, xm, d);
            xx += __shfl_xor_sync(0xffffffffu, xx, d);
        }
        if (lane == 0) {
            const float amp = xm * inv_norm;
            out[tile * WARPS + warp] = make_float2(amp, xx - amp * xm);
        }
    }
}

int main()
{
    float *spec, *tmpl;
    float2* out;
    CK(cudaMalloc(&spec, (size_t)SPECTRA * PIX * sizeof(float)));
    CK(cudaMalloc(&tmpl, PIX * sizeof(float)));
    CK(cudaMalloc(&out, SPECTRA * sizeof(float2)));
    std::vector<float> ht(PIX);
    double norm = 0;
    for (int p = 0; p < PIX; ++p) {
        ht[p] = (float)(1.0 + 0.3 * std::sin(0.02 * p));
        norm += (double)ht[p] * ht[p];
    }
    CK(cudaMemcpy(tmpl, ht.data(), PIX * sizeof(float), cudaMemcpyHostToDevice));
    make_spectra<<<(unsigned)((size_t)SPECTRA * PIX / 256), 256>>>(spec);
    CK(cudaFuncSetAttribute(fit, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
    auto step = [&] { fit<<<BLOCKS, (WARPS + 1) * 32, SMEM>>>(spec, (const float4*)tmpl, (float)(1.0 / norm), out); };
    step();
    step();
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 40;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float2> ho(SPECTRA);
    std::vector<float> hs(PIX);
    CK(cudaMemcpy(ho.data(), out, SPECTRA * sizeof(float2), cudaMemcpyDeviceToHost));
    for (int g = 0; g < SPECTRA; g += 131) {
        CK(cudaMemcpy(hs.data(), spec + (size_t)g * PIX, PIX * sizeof(float), cudaMemcpyDeviceToHost));
        double xm = 0, xx = 0;
        for (int p = 0; p < PIX; ++p) {
            xm += (double)hs[p] * ht[p];
            xx += (double)hs[p] * hs[p];
        }
        double amp = xm / norm, chi = xx - amp * xm;
        if (std::fabs(amp - ho[g].x) > 1e-4 * amp || std::fabs(chi - ho[g].y) > 5e-5 * xx) {
            printf("mismatch for spectrum %d: %f %f vs %f %f\n", g, ho[g].x, ho[g].y, amp, chi);
            return 1;
        }
    }
    return 0;
}
