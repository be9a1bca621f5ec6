// SPDX-License-Identifier: Apache-2.0. Down projection with int4 weights for a small decode batch (32 tokens):
//   y[t][n] = sum_k x[t][k] * scale[n][k / 128] * (w[n][k] - 8)
// Warp-specialised: dequantising warps expand weight tiles to half in a ring of shared
// stages, four MMA warps multiply them. One block per 128 output features.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#define CHECK(x)                                                                                    \
    if (cudaError_t e_ = (x)) { printf("line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(1); }

constexpr int kTokens = 32, kIn = 14336, kOut = 16896;
constexpr int BN = 128, BK = 64, kSteps = kIn / BK, kGroups = kIn / 128, kStages = 8;
constexpr int kMmaWarps = 4;
constexpr int kDequantWarps = 4;
constexpr int kThreads = 32 * (kMmaWarps + kDequantWarps);
constexpr int kPitch = BK + 8, kStageHalves = (kTokens + BN) * kPitch;   // padded rows
constexpr int kSmem = kStages * kStageHalves * 2 + 2 * kStages * 8;
constexpr int kTileWords = BN * BK / 8;              // packed words per weight tile

__host__ __device__ inline uint32_t mix32(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    return x ^ (x >> 16);
}
__host__ __device__ inline float x_at(int t, int k) { return (float)((int)(mix32(t * kIn + k) & 63) - 32) * (1.0f / 32.0f); }
__host__ __device__ inline uint32_t w_at(uint32_t n, uint32_t k) { return mix32(n * kIn + k + 0x55555555u) & 15; }
__host__ __device__ inline float scale_at(int n, int g) { return (float)(1 + (mix32(n * kGroups + g + 0x33333333u) & 15)) * (1.0f / 512.0f); }

// Weights are stored tile after tile; in a tile, chunk (r * 2 + p) * 32 + lane holds 32
// values of row r * 32 + lane from k = 32 p. In a word nibble i is k = 2 i, nibble 4 + i is k = 2 i + 1.
__global__ void make_operands(uint32_t* packed, __half* scales, __half* x)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    uint32_t tile = i / kTileWords, in = i % kTileWords, chunk = in / 4;
    uint32_t n = tile / kSteps * BN + chunk / 64 * 32 + chunk % 32;
    uint32_t k = tile % kSteps * BK + chunk / 32 % 2 * 32 + in % 4 * 8;
    uint32_t word = 0;
    for (int e = 0; e < 8; ++e) word |= w_at(n, k + e) << (4 * (e / 2 + e % 2 * 4));
    packed[i] = word;
    if (i < kTokens * kIn) x[i] = __float2half(x_at(i / kIn, i % kIn));
    if (i < kOut * kGroups) {   // [tile of rows][group][row]
        int row = i / (BN * kGroups) * BN + i % BN, g = i / BN % kGroups;
        scales[i] = __float2half(scale_at(row, g));
    }
}

__device__ inline uint32_t smem_addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline void mbar_init(uint64_t* b, uint32_t n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_addr(b)), "r"(n) : "memory"); }
__device__ inline void mbar_arrive(uint64_t* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_addr(b)) : "memory"); }
__device__ inline void mbar_wait(uint64_t* b, uint32_t parity)
{
    for (uint32_t done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(smem_addr(b)), "r"(parity) : "memory");
}
__device__ inline uint32_t expand_pair(uint32_t w, __half2 scale)   // two nibbles, 16 bits apart
{
    uint32_t h = (w & 0x000f000fu) | 0x64006400u;                   // 1024 + q in half
    __half2 v = __hmul2(__hsub2(*reinterpret_cast<__half2*>(&h), __half2half2(__ushort_as_half(0x6408))), scale);
    return *reinterpret_cast<uint32_t*>(&v);
}

__global__ void __launch_bounds__(kThreads, 1)
w4a16_projection(const __half* __restrict__ x, const uint4* __restrict__ packed,
                 const __half* __restrict__ scales, float* __restrict__ y)
{
    extern __shared__ __align__(128) unsigned char smem[];
    __half* ring = reinterpret_cast<__half*>(smem);
    uint64_t* full = reinterpret_cast<uint64_t*>(smem + kStages * kStageHalves * 2);
    uint64_t* empty = full + kStages;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0)
        for (int s = 0; s < kStages; ++s) {
            mbar_init(full + s, 32);
            mbar_init(empty + s, kMmaWarps);
        }
    __syncthreads();

    if (warp >= kMmaWarps) {   // dequantise: each warp takes every kDequantWarps-th step
        const uint4* src = packed + (size_t)blockIdx.x * kSteps * (kTileWords / 4) + lane;
        const __half* sc = scales + (size_t)blockIdx.x * kGroups * BN + lane;
        uint4 next[8];
        __half next_scale[4];
        auto load = [&](int step) {
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                next[i] = __ldcs(src + step * (kTileWords / 4) + i * 32);
                if (i < 4) next_scale[i] = sc[step / 2 * BN + i * 32];
            }
        };
        load(warp - kMmaWarps);
        for (int step = warp - kMmaWarps; step < kSteps; step += kDequantWarps) {
            uint4 cur[8];
            __half2 scale[4];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                cur[i] = next[i];
                scale[i / 2] = __half2half2(next_scale[i / 2]);
            }
            if (step + kDequantWarps < kSteps) load(step + kDequantWarps);

            const int s = step % kStages;
            mbar_wait(empty + s, ((step / kStages) & 1) ^ 1);
            __half *sx = ring + s * kStageHalves, *sw = sx + kTokens * kPitch;
#pragma unroll
            for (int i = 0; i < kTokens * BK / 8 / 32; ++i) {
                const int row = i * 4 + lane / 8, k = lane % 8 * 8;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem_addr(sx + row * kPitch + k)),
                             "l"(x + (size_t)row * kIn + step * BK + k) : "memory");
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const uint32_t words[4] = {cur[i].x, cur[i].y, cur[i].z, cur[i].w};
                const __half2 f = scale[i / 2];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const uint32_t w = words[j];
                    *reinterpret_cast<uint4*>(sw + (i / 2 * 32 + lane) * kPitch + i % 2 * 32 + j * 8) =
                        make_uint4(expand_pair(w, f), expand_pair(w >> 4, f), expand_pair(w >> 8, f), expand_pair(w >> 12, f));
                }
            }
            asm volatile("cp.async.wait_all;" ::: "memory");
            mbar_arrive(full + s);
        }
        return;
    }

    using namespace nvcuda;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc[2][2];
    for (int i = 0; i < 4; ++i) wmma::fill_fragment(acc[i / 2][i % 2], 0.0f);
    for (int step = 0; step < kSteps; ++step) {
        const int s = step % kStages;
        mbar_wait(full + s, (step / kStages) & 1);
        const __half *sx = ring + s * kStageHalves, *sw = sx + (kTokens + warp * 32) * kPitch;
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b[2];
            for (int i = 0; i < 2; ++i) {
                wmma::load_matrix_sync(a[i], sx + i * 16 * kPitch + kk, kPitch);
                wmma::load_matrix_sync(b[i], sw + i * 16 * kPitch + kk, kPitch);
            }
            for (int i = 0; i < 4; ++i) wmma::mma_sync(acc[i / 2][i % 2], a[i / 2], b[i % 2], acc[i / 2][i % 2]);
        }
        __syncwarp();
        if (lane == 0) mbar_arrive(empty + s);
    }
    for (int i = 0; i < 4; ++i)
        wmma::store_matrix_sync(y + (size_t)(i / 2) * 16 * kOut + blockIdx.x * BN + warp * 32 + i % 2 * 16,
                                acc[i / 2][i % 2], kOut, wmma::mem_row_major);
}

int main()
{
    const size_t words = (size_t)kOut * kIn / 8;
    __half *x, *scales;
    uint32_t* packed;
    float *y, ms = 0;
    CHECK(cudaMalloc(&x, 2 * kTokens * kIn));
    CHECK(cudaMalloc(&packed, 4 * words));
    CHECK(cudaMalloc(&scales, 2 * kOut * kGroups));
    CHECK(cudaMalloc(&y, 4 * kTokens * kOut));
    make_operands<<<(unsigned)(words / 256), 256>>>(packed, scales, x);
    CHECK(cudaGetLastError());
    CHECK(cudaFuncSetAttribute(w4a16_projection, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));

    const int warmup = 2, iterations = 40;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    for (int i = 0; i < warmup + iterations; ++i) {
        if (i == warmup) CHECK(cudaEventRecord(start));
        w4a16_projection<<<kOut / BN, kThreads, kSmem>>>(x, reinterpret_cast<const uint4*>(packed), scales, y);
    }
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<float> got(kTokens * kOut);
    CHECK(cudaMemcpy(got.data(), y, sizeof(float) * got.size(), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 512; ++i) {
        const int t = i % kTokens, n = (int)(mix32(i + 3) % kOut);
        double want = 0;
        for (int k = 0; k < kIn; ++k) want += (double)x_at(t, k) * scale_at(n, k / 128) * ((int)w_at(n, k) - 8);
        const float y_tn = got[t * kOut + n];
        if (!(std::fabs(y_tn - want) <= 0.02 + 1e-3 * std::fabs(want))) {
            printf("mismatch: token %d feature %d: %g, expected %g\n", t, n, y_tn, want);
            return 1;
        }
    }
    return 0;
}
