// SPDX-License-Identifier: Apache-2.0
// Softened gravity of a star cluster, all pairs.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

template <class Launch>
static double time_us(Launch launch, int warm = 20, int reps = 50) {
    for (int i = 0; i < warm; ++i) launch();
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < reps; ++i) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    CUDA_CHECK(cudaEventDestroy(begin));
    CUDA_CHECK(cudaEventDestroy(end));
    return 1e3 * ms / reps;
}

constexpr int kThreads = 256;
constexpr int kBodies = 2;    // targets a thread
constexpr int kSplits = 32;   // source ranges

// Arguments are never denormal: the softening keeps them away from zero.
__device__ __forceinline__ float fast_rsqrt(float v) {
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}

__device__ __forceinline__ void pull(float3& acc, const float4& on, const float4& by, float eps2) {
    const float dx = by.x - on.x, dy = by.y - on.y, dz = by.z - on.z;
    const float inv = fast_rsqrt(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2))));
    const float s = by.w * inv * (inv * inv);
    acc.x = fmaf(dx, s, acc.x);
    acc.y = fmaf(dy, s, acc.y);
    acc.z = fmaf(dz, s, acc.z);
}

__global__ void __launch_bounds__(kThreads)
gravity(const float4* __restrict__ body, float* __restrict__ acc, int n, float eps2) {
    __shared__ float4 source[kThreads];
    const int base = blockIdx.x * kThreads * kBodies + threadIdx.x;
    float4 mine[kBodies];
    float3 sum[kBodies];
#pragma unroll
    for (int b = 0; b < kBodies; ++b) {
        mine[b] = body[base + b * kThreads];
        sum[b] = make_float3(0.f, 0.f, 0.f);
    }
    const int range = n / kSplits, begin = blockIdx.y * range;
    for (int j0 = begin; j0 < begin + range; j0 += kThreads) {
        __syncthreads();
        source[threadIdx.x] = body[j0 + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < kThreads; ++j) {
            const float4 s = source[j];
#pragma unroll
            for (int b = 0; b < kBodies; ++b) pull(sum[b], mine[b], s, eps2);
        }
    }
#pragma unroll
    for (int b = 0; b < kBodies; ++b) {
        const int i = base + b * kThreads;
        atomicAdd(acc + i, sum[b].x);
        atomicAdd(acc + n + i, sum[b].y);
        atomicAdd(acc + 2 * n + i, sum[b].z);
    }
}

int main() {
    const int n = 131072;
    const float eps2 = 0.01f;
    std::vector<float4> body(n);
    uint32_t s = 1u;
    auto uniform = [&] {
        s = s * 1664525u + 1013904223u;
        return (float)(s >> 8) * (2.f / 16777216.f) - 1.f;
    };
    for (auto& b : body) {
        b.x = uniform();
        b.y = uniform();
        b.z = uniform();
        b.w = 1.f / n;
    }
    float4* d_body;
    float* d_acc;
    CUDA_CHECK(cudaMalloc(&d_body, n * sizeof(float4)));
    CUDA_CHECK(cudaMalloc(&d_acc, 3 * (size_t)n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_body, body.data(), n * sizeof(float4), cudaMemcpyHostToDevice));

    const dim3 grid(n / (kThreads * kBodies), kSplits);
    const double us = time_us([&] {
        cudaMemsetAsync(d_acc, 0, 3 * (size_t)n * sizeof(float));
        gravity<<<grid, kThreads>>>(d_body, d_acc, n, eps2);
    });

    std::vector<float> acc(3 * (size_t)n);
    CUDA_CHECK(cudaMemcpy(acc.data(), d_acc, acc.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 0; i < n; i += 2741) {
        double a[3] = {};
        for (int j = 0; j < n; ++j) {
            const double dx = body[j].x - body[i].x, dy = body[j].y - body[i].y, dz = body[j].z - body[i].z;
            const double r2 = dx * dx + dy * dy + dz * dz + eps2, f = body[j].w / (r2 * std::sqrt(r2));
            a[0] += dx * f;
            a[1] += dy * f;
            a[2] += dz * f;
        }
        for (int c = 0; c < 3; ++c)
            if (!(std::fabs(a[c] - acc[(size_t)c * n + i]) < 1e-3)) ok = false;
    }
    double checksum = 0.0;
    for (float v : acc) checksum += std::fabs(v);
    std::printf("checksum: %.4f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
