// SPDX-License-Identifier: Apache-2.0. Decode step of grouped-query attention over a paged KV cache: one new token per
// sequence, four query heads share a KV head. A block walks the pages of one
// (sequence, KV head) through a cp.async ring and keeps a running softmax.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kSeqs = 16, kKvHeads = 8, kGroup = 4, kDim = 128;
constexpr int kPage = 16;                    // tokens per page
constexpr int kPagesPerSeq = 512;            // 8192 tokens of context
constexpr int kPages = kSeqs * kPagesPerSeq;
constexpr int kTile = kPage * kDim;          // halves of K (or V) in one page and head
constexpr int kStages = 6, kThreads = 256;
constexpr int kSmem = kStages * 2 * kTile * 2 + kPagesPerSeq * 4 + kGroup * kPage * 4;

__host__ __device__ inline uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}
__host__ __device__ inline float cache_value(uint32_t i) { return (float)((int)(mix32(i) & 255) - 128) * (1.0f / 256.0f); }
__host__ __device__ inline float query_value(uint32_t i) { return (float)((int)(mix32(i + 0x1234567U) & 255) - 128) * (1.0f / 32.0f); }
__host__ __device__ inline int page_of(int seq, int p) { return (int)(((uint32_t)(seq * kPagesPerSeq + p) * 2477u + 91u) % kPages); }
constexpr uint32_t kValueSalt = 0x80000000u;

__global__ void make_cache(__half* k, __half* v, int* table, float* q)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    k[i] = __float2half(cache_value(i));
    v[i] = __float2half(cache_value(i + kValueSalt));
    if (i < kPages) table[i] = page_of(i / kPagesPerSeq, i % kPagesPerSeq);
    if (i < kSeqs * kKvHeads * kGroup * kDim) q[i] = query_value(i);
}

__device__ inline void cp_async16(void* dst, const void* src)
{
    uint32_t d = (uint32_t)__cvta_generic_to_shared(dst);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(src) : "memory");
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ inline void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

__global__ void __launch_bounds__(kThreads)
paged_decode(const float* __restrict__ q, const __half* __restrict__ kpool, const __half* __restrict__ vpool,
             const int* __restrict__ table, float* __restrict__ out)
{
    extern __shared__ __align__(128) unsigned char smem[];
    __half* ring = reinterpret_cast<__half*>(smem);                       // [stage][K, V][token][dim]
    int* pages = reinterpret_cast<int*>(ring + kStages * 2 * kTile);
    float* score = reinterpret_cast<float*>(pages + kPagesPerSeq);        // [head][token]

    const int tid = threadIdx.x, head = blockIdx.x % kKvHeads, seq = blockIdx.x / kKvHeads;
    for (int i = tid; i < kPagesPerSeq; i += kThreads) pages[i] = table[seq * kPagesPerSeq + i];

    // scores: half a warp per token, eight dimensions per lane
    const int token = tid / 16, lane = tid % 16;
    const float to_log2 = 1.44269504f * rsqrtf((float)kDim);
    float qr[kGroup][8];
#pragma unroll
    for (int g = 0; g < kGroup; ++g)
#pragma unroll
        for (int e = 0; e < 8; ++e)
            qr[g][e] = q[((size_t)blockIdx.x * kGroup + g) * kDim + lane * 8 + e] * to_log2;

    // output: 64 threads per query head, two dimensions each
    const int g_out = tid / 64, d_out = (tid % 64) * 2;
    float run_max = -INFINITY, run_sum = 0.0f, acc0 = 0.0f, acc1 = 0.0f;
    __syncthreads();

    auto fetch = [&](int tile) {
        const size_t src = ((size_t)pages[tile] * kKvHeads + head) * kTile + tid * 8;
        __half* dst = ring + (tile % kStages) * 2 * kTile + tid * 8;
        cp_async16(dst, kpool + src);
        cp_async16(dst + kTile, vpool + src);
    };
    for (int s = 0; s < kStages - 1; ++s) {
        fetch(s);
        cp_async_commit();
    }

    for (int t = 0; t < kPagesPerSeq; ++t) {
        if (t + kStages - 1 < kPagesPerSeq) fetch(t + kStages - 1);
        cp_async_commit();
        cp_async_wait<kStages - 1>();
        __syncthreads();
        const __half* kt = ring + (t % kStages) * 2 * kTile;
        const __half* vt = kt + kTile;

        float dot[kGroup] = {};
        const uint4 packed = *reinterpret_cast<const uint4*>(kt + token * kDim + lane * 8);
        const __half2* kh = reinterpret_cast<const __half2*>(&packed);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const float2 k2 = __half22float2(kh[e]);
#pragma unroll
            for (int g = 0; g < kGroup; ++g) dot[g] += qr[g][2 * e] * k2.x + qr[g][2 * e + 1] * k2.y;
        }
#pragma unroll
        for (int g = 0; g < kGroup; ++g)
#pragma unroll
            for (int o = 8; o > 0; o >>= 1) dot[g] += __shfl_xor_sync(0xffffffffu, dot[g], o);
        if (lane < kGroup) score[lane * kPage + token] = lane == 0 ? dot[0] : lane == 1 ? dot[1] : lane == 2 ? dot[2] : dot[3];
        __syncthreads();

        float p[kPage], top = run_max;
#pragma unroll
        for (int j = 0; j < kPage; j += 4)
            *reinterpret_cast<float4*>(p + j) = *reinterpret_cast<const float4*>(score + g_out * kPage + j);
#pragma unroll
        for (int j = 0; j < kPage; ++j) top = fmaxf(top, p[j]);
        const float shrink = exp2f(run_max - top);
        run_max = top;
        run_sum *= shrink;
        acc0 *= shrink;
        acc1 *= shrink;
#pragma unroll
        for (int j = 0; j < kPage; ++j) {
            const float w = exp2f(p[j] - top);
            const float2 v2 = __half22float2(*reinterpret_cast<const __half2*>(vt + j * kDim + d_out));
            run_sum += w;
            acc0 += w * v2.x;
            acc1 += w * v2.y;
        }
        __syncthreads();
    }
    float2* o = reinterpret_cast<float2*>(out + ((size_t)blockIdx.x * kGroup + g_out) * kDim + d_out);
    *o = make_float2(acc0 / run_sum, acc1 / run_sum);
}

int main()
{
    const size_t pool = (size_t)kPages * kKvHeads * kTile, nq = (size_t)kSeqs * kKvHeads * kGroup * kDim;
    __half *k, *v;
    int* table;
    float *q, *out;
    CHECK(cudaMalloc(&k, pool * sizeof(__half)));
    CHECK(cudaMalloc(&v, pool * sizeof(__half)));
    CHECK(cudaMalloc(&table, kPages * sizeof(int)));
    CHECK(cudaMalloc(&q, nq * sizeof(float)));
    CHECK(cudaMalloc(&out, nq * sizeof(float)));
    make_cache<<<(unsigned)(pool / 256), 256>>>(k, v, table, q);
    CHECK(cudaGetLastError());
    CHECK(cudaFuncSetAttribute(paged_decode, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    const int warmup = 2, iterations = 30;
    for (int i = 0; i < warmup + iterations; ++i) {
        if (i == warmup) CHECK(cudaEventRecord(start));
        paged_decode<<<kSeqs * kKvHeads, kThreads, kSmem>>>(q, k, v, table, out);
    }
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<float> got(nq);
    CHECK(cudaMemcpy(got.data(), out, nq * sizeof(float), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 6; ++s) {
        const int row = (s * 173 + 5) % (kSeqs * kKvHeads * kGroup);
        const int kvh = (row / kGroup) % kKvHeads, seq = row / (kGroup * kKvHeads);
        std::vector<double> acc(kDim, 0.0);
        double sum = 0.0;
        for (int t = 0; t < kPagesPerSeq * kPage; ++t) {
            const uint32_t at = ((uint32_t)page_of(seq, t / kPage) * kKvHeads + kvh) * kTile + (t % kPage) * kDim;
            double dot = 0.0;
            for (int d = 0; d < kDim; ++d) dot += (double)query_value(row * kDim + d) * cache_value(at + d);
            const double w = std::exp(dot / std::sqrt((double)kDim));
            sum += w;
            for (int d = 0; d < kDim; ++d) acc[d] += w * cache_value(at + d + kValueSalt);
        }
        for (int d = 0; d < kDim; ++d)
            if (!(std::fabs(got[(size_t)row * kDim + d] - acc[d] / sum) <= 1e-4)) {
                printf("output mismatch: row %d dim %d: %g, expected %g\n", row, d, got[(size_t)row * kDim + d], acc[d] / sum);
                return 1;
            }
    }
    return 0;
}
