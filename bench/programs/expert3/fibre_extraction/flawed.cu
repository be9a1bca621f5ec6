// SPDX-License-Identifier: Apache-2.0. Optimal extraction of fibre spectra from raw CCD frames.  Producer warps stream raw
// 16-bit counts, apply the detector's linearity polynomial and write calibrated tiles
// of 32 rows x 128 columns into a shared ring; consumer warps, one thread per column,
// project each tile on the spatial profiles of 8 fibres.  Full/empty mbarriers
// couple the two; blocks are persistent.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cstdint>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int ROWS = 32, COLS = 128, FIBRES = 8;
constexpr int PRODUCERS = 1, CONSUMERS = 4;          // warps
constexpr int THREADS = 32 * (PRODUCERS + CONSUMERS);
constexpr int STAGES = 4;
constexpr int BLOCKS = 132, TILES = BLOCKS * 160;
constexpr int PIXELS = ROWS * COLS;
constexpr int SMEM = STAGES * PIXELS * sizeof(float);
constexpr int VECS = PIXELS / 8;                     // 16-byte pieces of a raw tile
constexpr int SHARE = VECS / (PRODUCERS * 32);       // pieces to a producer thread
constexpr int BATCH = SHARE < 8 ? SHARE : 8;         // of which so many are in flight

__host__ __device__ inline float linearise(float n)
{
    n -= 211.5f;                                     // bias level
    float s = n * 1.52587890625e-5f;
    return n * (1.0f + s * (0.021f + s * (-0.013f + s * (0.0047f + s * (-0.0019f + s * 0.0006f)))));
}
__global__ void make_raw(uint16_t* raw)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= (size_t)TILES * PIXELS) return;
    unsigned h = (unsigned)i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    raw[i] = (uint16_t)(300 + (h & 0x7fff));
}
__device__ __forceinline__ uint32_t addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void bar_init(uint64_t* b, int n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(addr(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint64_t* b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(addr(b)) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* b, unsigned parity)
{
    asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra W;\n}" ::"r"(addr(b)), "r"(parity) : "memory");
}

__global__ void __launch_bounds__(THREADS) extract(const uint4* __restrict__ raw,
                                                   const float* __restrict__ profile,
                                                   float* __restrict__ flux)
{
    extern __shared__ __align__(16) float ring[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    __shared__ __align__(16) float prof[ROWS][FIBRES];
    for (int i = threadIdx.x; i < ROWS * FIBRES; i += THREADS) prof[i / FIBRES][i % FIBRES] = profile[i];
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full + s, PRODUCERS);
            bar_init(empty + s, CONSUMERS);
        }
    __syncthreads();

    const int lane = threadIdx.x & 31;
    int stage = 0, phase = 0;
    if (threadIdx.x >= CONSUMERS * 32) {
        const int p = threadIdx.x - CONSUMERS * 32;
        constexpr int ROUND = PRODUCERS * 32 * BATCH, ROUNDS = VECS / ROUND;
        static_assert(ROUNDS * ROUND == VECS, "whole batches");
        uint4 v[BATCH];
        const uint4* src = raw + (size_t)blockIdx.x * VECS + p;
#pragma unroll
        for (int b = 0; b < BATCH; ++b) v[b] = __ldcs(src + b * PRODUCERS * 32);
        for (int tile = blockIdx.x; tile < TILES; tile += BLOCKS) {
            bar_wait(empty + stage, phase ^ 1);
            float4* dst = (float4*)(ring + stage * PIXELS);
            for (int r = 0; r < ROUNDS; ++r) {
                // The next batch, of this tile or the following one, comes while this one is converted.
                const int next = r + 1 < ROUNDS ? tile : tile + BLOCKS, nr = r + 1 < ROUNDS ? r + 1 : 0;
                const uint4* ns = raw + (size_t)(next < TILES ? next : tile) * VECS + nr * ROUND + p;
#pragma unroll
                for (int b = 0; b < BATCH; ++b) {
                    const uint4 c = v[b];
                    v[b] = __ldcs(ns + b * PRODUCERS * 32);
                    const int at = (r * ROUND + b * PRODUCERS * 32 + p) * 2;
                    dst[at] = make_float4(linearise(c.x & 0xffff), linearise(c.x >> 16),
                                          linearise(c.y & 0xffff), linearise(c.y >> 16));
                    dst[at + 1] = make_float4(linearise(c.z & 0xffff), linearise(c.z >> 16),
                                              linearise(c.w & 0xffff), linearise(c.w >> 16));
                }
            }
            __syncwarp();
            if (lane == 0) bar_arrive(full + stage);
            if (++stage == STAGES) { stage = 0; phase ^= 1; }
        }
    } else {
        const int col = threadIdx.x;
        for (int tile = blockIdx.x; tile < TILES; tile += BLOCKS) {
            bar_wait(full + stage, phase);
            const float* d = ring + stage * PIXELS + col;
            float acc[FIBRES] = {};
#pragma unroll 8
            for (int r = 0; r < ROWS; ++r) {
                const float x = d[r * COLS];
                const float4 a = *(const float4*)&prof[r][0], b = *(const float4*)&prof[r][4];
                acc[0] = fmaf(a.x, x, acc[0]); acc[1] = fmaf(a.y, x, acc[1]);
                acc[2] = fmaf(a.z, x, acc[2]); acc[3] = fmaf(a.w, x, acc[3]);
                acc[4] = fmaf(b.x, x, acc[4]); acc[5] = fmaf(b.y, x, acc[5]);
                acc[6] = fmaf(b.z, x, acc[6]); acc[7] = fmaf(b.w, x, acc[7]);
            }
            __syncwarp();
            if (lane == 0) bar_arrive(empty + stage);
            if (++stage == STAGES) { stage = 0; phase ^= 1; }
#pragma unroll
            for (int f = 0; f < FIBRES; ++f) __stcs(flux + ((size_t)tile * FIBRES + f) * COLS + col, acc[f]);
        }
    }
}

int main()
{
    uint16_t* raw;
    float *prof, *flux;
    const size_t nf = (size_t)TILES * FIBRES * COLS;
    CK(cudaMalloc(&raw, (size_t)TILES * PIXELS * 2));
    CK(cudaMalloc(&prof, ROWS * FIBRES * sizeof(float)));
    CK(cudaMalloc(&flux, nf * sizeof(float)));
    std::vector<float> hp(ROWS * FIBRES);
    for (int r = 0; r < ROWS; ++r)
        for (int f = 0; f < FIBRES; ++f) hp[r * FIBRES + f] = (float)std::exp(-0.5 * std::pow((r - 4.0 * f - 1.5) / 1.4, 2));
    CK(cudaMemcpy(prof, hp.data(), hp.size() * sizeof(float), cudaMemcpyHostToDevice));
    make_raw<<<(unsigned)((size_t)TILES * PIXELS / 256), 256>>>(raw);
    CK(cudaFuncSetAttribute(extract, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));

    for (int i = 0; i < 2; ++i) extract<<<BLOCKS, THREADS, SMEM>>>((const uint4*)raw, prof, flux);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 30;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) extract<<<BLOCKS, THREADS, SMEM>>>((const uint4*)raw, prof, flux);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> hf(nf);
    std::vector<uint16_t> ht(PIXELS);
    CK(cudaMemcpy(hf.data(), flux, nf * sizeof(float), cudaMemcpyDeviceToHost));
    for (int tile = 0; tile < TILES; tile += 97) {
        CK(cudaMemcpy(ht.data(), raw + (size_t)tile * PIXELS, PIXELS * 2, cudaMemcpyDeviceToHost));
        for (int q = 0; q < 64; ++q) {
            int f = q % FIBRES, c = (q * 29 + tile) % COLS;
            double s = 0;
            for (int r = 0; r < ROWS; ++r) s += (double)hp[r * FIBRES + f] * linearise(ht[r * COLS + c]);
            double g = hf[((size_t)tile * FIBRES + f) * COLS + c];
            if (std::fabs(s - g) > 1e-4 * s + 0.01) {
                printf("mismatch in tile %d fibre %d column %d: %f vs %f\n", tile, f, c, g, s);
                return 1;
            }
        }
    }
    return 0;
}
