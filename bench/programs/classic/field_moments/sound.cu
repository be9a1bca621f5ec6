// SPDX-License-Identifier: Apache-2.0
// Diagnostics of a simulation field: minimum, maximum, mean and variance in one pass.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CUDA_GUARD(x)                                                          \
    do {                                                                       \
        const cudaError_t rc_ = (x);                                           \
        if (rc_ != cudaSuccess) {                                              \
            std::printf("%s (%s)\n", cudaGetErrorString(rc_), #x);             \
            std::exit(2);                                                      \
        }                                                                      \
    } while (0)

constexpr int kThreads = 512;
constexpr int kUnroll = 4;

struct Moments {
    float low, high;
    double sum, squares;
};

__host__ __device__ inline float field_at(uint32_t i) {
    uint32_t h = i ^ 0x68bc21ebu;
    h *= 0x02e5be93u;
    h ^= h >> 15;
    h *= 0x967a889bu;
    h ^= h >> 16;
    return (float)(h >> 8) * (4.f / 16777216.f) - 1.f;
}

__global__ void simulate(float* field) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    field[i] = field_at(i);
}

__device__ __forceinline__ void merge(Moments& a, const Moments& b) {
    a.low = fminf(a.low, b.low);
    a.high = fmaxf(a.high, b.high);
    a.sum += b.sum;
    a.squares += b.squares;
}

__device__ __forceinline__ Moments lane_xor(const Moments& m, int d) {
    return {__shfl_xor_sync(0xffffffffu, m.low, d), __shfl_xor_sync(0xffffffffu, m.high, d),
            __shfl_xor_sync(0xffffffffu, m.sum, d), __shfl_xor_sync(0xffffffffu, m.squares, d)};
}

__device__ Moments block_total(Moments m) {
    __shared__ Moments warps[kThreads / 32];
    for (int d = 16; d; d >>= 1) merge(m, lane_xor(m, d));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = m;
    __syncthreads();
    m = warps[threadIdx.x % (kThreads / 32)];
    for (int d = kThreads / 64; d; d >>= 1) merge(m, lane_xor(m, d));
    return m;
}

// packs is a multiple of kThreads * kUnroll
__global__ void __launch_bounds__(kThreads)
reduce_field(const float4* __restrict__ field, uint32_t packs, Moments* __restrict__ partial, unsigned* done, Moments* out) {
    float low = FLT_MAX, high = -FLT_MAX;
    double sum = 0.0, squares = 0.0;
    for (uint32_t i = blockIdx.x * kThreads * kUnroll + threadIdx.x; i < packs; i += gridDim.x * kThreads * kUnroll) {
        float4 v[kUnroll];
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) v[k] = __ldcs(field + i + k * kThreads);
        float s = 0.f, s2 = 0.f;
#pragma unroll
        for (int k = 0; k < kUnroll; ++k) {
            low = fminf(low, fminf(fminf(v[k].x, v[k].y), fminf(v[k].z, v[k].w)));
            high = fmaxf(high, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
            s += (v[k].x + v[k].y) + (v[k].z + v[k].w);
            s2 = fmaf(v[k].x, v[k].x, fmaf(v[k].y, v[k].y, fmaf(v[k].z, v[k].z, fmaf(v[k].w, v[k].w, s2))));
        }
        sum += s;
        squares += s2;
    }
    Moments total = block_total({low, high, sum, squares});
    __shared__ bool last;
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = total;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    Moments all{FLT_MAX, -FLT_MAX, 0.0, 0.0};
    for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads) {
        const volatile Moments* p = partial + b;
        merge(all, {p->low, p->high, p->sum, p->squares});
    }
    all = block_total(all);
    if (threadIdx.x == 0) *out = all;
}

int main() {
    const uint32_t n = 1u << 27;
    int sms = 0;
    CUDA_GUARD(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int grid = sms * 4;
    float* field;
    Moments *partial, *out, got;
    unsigned* done;
    CUDA_GUARD(cudaMalloc(&field, (size_t)n * sizeof(float)));
    CUDA_GUARD(cudaMalloc(&partial, grid * sizeof(Moments)));
    CUDA_GUARD(cudaMalloc(&out, sizeof(Moments)));
    CUDA_GUARD(cudaMalloc(&done, sizeof(unsigned)));
    CUDA_GUARD(cudaMemset(done, 0, sizeof(unsigned)));
    simulate<<<n / 256, 256>>>(field);

    cudaEvent_t t0, t1;
    CUDA_GUARD(cudaEventCreate(&t0));
    CUDA_GUARD(cudaEventCreate(&t1));
    const int warm = 5, rounds = 200;
    for (int i = 0; i < warm + rounds; ++i) {
        if (i == warm) CUDA_GUARD(cudaEventRecord(t0));
        reduce_field<<<grid, kThreads>>>((const float4*)field, n / 4, partial, done, out);
    }
    CUDA_GUARD(cudaEventRecord(t1));
    CUDA_GUARD(cudaEventSynchronize(t1));
    CUDA_GUARD(cudaGetLastError());
    float ms = 0.f;
    CUDA_GUARD(cudaEventElapsedTime(&ms, t0, t1));

    CUDA_GUARD(cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
    float low = FLT_MAX, high = -FLT_MAX;
    double sum = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < n; ++i) {
        const float v = field_at(i);
        low = std::min(low, v);
        high = std::max(high, v);
        sum += v;
        squares += (double)v * v;
    }
    const bool ok = got.low == low && got.high == high && std::fabs(got.sum - sum) < 1e-6 * n &&
                    std::fabs(got.squares - squares) < 1e-6 * n;
    std::printf("mean %.6f variance %.6f\n", got.sum / n, got.squares / n - (got.sum / n) * (got.sum / n));
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / rounds);
    return ok ? 0 : 1;
}
