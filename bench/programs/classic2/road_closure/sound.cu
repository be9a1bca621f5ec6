// SPDX-License-Identifier: Apache-2.0
// Logistics: one squaring step of an all-pairs travel-time matrix over the (min, +) semiring, out[i][j] = min over k of (a[i][k] + a[k][j]).
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                 \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kNodes = 2048;
constexpr int kTile = 128;      // outputs of a block, each way
constexpr int kDepth = 8;       // intermediate nodes staged at a time
constexpr int kMicro = 8;       // outputs of a thread, each way
constexpr int kThreads = 256;
constexpr int kPitch = kTile + 4;

__host__ __device__ inline float travel_time(uint32_t from, uint32_t to)
{
    if (from == to) return 0.0f;
    uint32_t x = from * 0x9e3779b1u ^ to * 0x85ebca77u;
    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 12;
    x *= 0x297a2d39u;
    x ^= x >> 15;
    return (x & 7u) ? 1.0e6f : 1.0f + (x >> 8) * (100.0f / 16777216.0f);
}

__global__ void make_roads(float* a)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kNodes * kNodes) a[i] = travel_time(i / kNodes, i % kNodes);
}

__global__ void __launch_bounds__(kThreads, 2)
close_paths(const float* __restrict__ a, float* __restrict__ out)
{
    __shared__ __align__(16) float from[2][kDepth][kPitch];   // a[row0 + m][k], k outermost
    __shared__ __align__(16) float onto[2][kDepth][kTile];    // a[k][col0 + n]

    const int t = threadIdx.x;
    const int row0 = blockIdx.y * kTile;
    const int col0 = blockIdx.x * kTile;
    const int ty = t / 16 * 4;      // a thread has rows ty..ty+3 and ty+64..ty+67,
    const int tx = t % 16 * 4;      // and columns likewise

    // One quad of each operand per thread and stage.
    const int from_row = t / 2, from_k = t % 2 * 4;
    const int onto_k = t / 32, onto_col = t % 32 * 4;
    const unsigned from_at = (row0 + from_row) * kNodes + from_k;
    const unsigned onto_at = onto_k * kNodes + col0 + onto_col;

    // Asynchronous copies; those of the first operand also turn it.
    auto load = [&](int side, int k0) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            __pipeline_memcpy_async(&from[side][from_k + i][from_row], a + from_at + k0 + i, 4);
        __pipeline_memcpy_async(&onto[side][onto_k][onto_col], a + onto_at + k0 * kNodes, 16);
        __pipeline_commit();
    };

    float best[kMicro][kMicro];
#pragma unroll
    for (int i = 0; i < kMicro; ++i)
#pragma unroll
        for (int j = 0; j < kMicro; ++j) best[i][j] = 3.0e38f;

    load(0, 0);
    __pipeline_wait_prior(0);
    __syncthreads();
    int side = 0;
    for (int k0 = 0; k0 < kNodes; k0 += kDepth) {
        if (k0 + kDepth < kNodes) load(side ^ 1, k0 + kDepth);
#pragma unroll 4
        for (int k = 0; k < kDepth; ++k) {
            float r[kMicro], c[kMicro];
            *(float4*)&r[0] = *(const float4*)&from[side][k][ty];
            *(float4*)&r[4] = *(const float4*)&from[side][k][ty + 64];
            *(float4*)&c[0] = *(const float4*)&onto[side][k][tx];
            *(float4*)&c[4] = *(const float4*)&onto[side][k][tx + 64];
#pragma unroll
            for (int i = 0; i < kMicro; ++i)
#pragma unroll
                for (int j = 0; j < kMicro; ++j) best[i][j] = fminf(best[i][j], r[i] + c[j]);
        }
        __pipeline_wait_prior(0);
        __syncthreads();
        side ^= 1;
    }

#pragma unroll
    for (int i = 0; i < kMicro; ++i) {
        float* dst = out + (size_t)(row0 + ty + (i & 3) + (i >> 2) * 64) * kNodes + col0 + tx;
        *(float4*)dst = make_float4(best[i][0], best[i][1], best[i][2], best[i][3]);
        *(float4*)(dst + 64) = make_float4(best[i][4], best[i][5], best[i][6], best[i][7]);
    }
}

static bool verify(const std::vector<float>& out)
{
    for (uint32_t n = 0; n < 4096; ++n) {
        const uint32_t i = n * 1103515245u / 65536u % kNodes;
        const uint32_t j = (n * 214013u + 2531011u) / 1024u % kNodes;
        float want = 3.0e38f;
        for (uint32_t k = 0; k < kNodes; ++k)
            want = std::fmin(want, travel_time(i, k) + travel_time(k, j));
        const float got = out[(size_t)i * kNodes + j];
        if (!(std::fabs(got - want) <= 1e-4f * want + 1e-5f)) {
            std::fprintf(stderr, "%u to %u: %f, expected %f\n", i, j, got, want);
            return false;
        }
    }
    return true;
}

int main()
{
    float *a, *out;
    const size_t bytes = sizeof(float) * (size_t)kNodes * kNodes;
    CK(cudaMalloc(&a, bytes));
    CK(cudaMalloc(&out, bytes));
    make_roads<<<kNodes * kNodes / 256, 256>>>(a);
    CK(cudaGetLastError());

    const dim3 grid(kNodes / kTile, kNodes / kTile);
    close_paths<<<grid, kThreads>>>(a, out);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());

    const int iterations = 50;
    cudaEvent_t start, stop;
    CK(cudaEventCreate(&start));
    CK(cudaEventCreate(&stop));
    CK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it) close_paths<<<grid, kThreads>>>(a, out);
    CK(cudaEventRecord(stop));
    CK(cudaEventSynchronize(stop));
    CK(cudaGetLastError());
    float ms = 0.0f;
    CK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> host((size_t)kNodes * kNodes);
    CK(cudaMemcpy(host.data(), out, bytes, cudaMemcpyDeviceToHost));
    const bool ok = verify(host);
    CK(cudaFree(a));
    CK(cudaFree(out));
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
