// SPDX-License-Identifier: Apache-2.0
// The vector part of a conjugate-gradient step: x += a p, r -= a q, and the new residual norm.
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

__device__ __forceinline__ double block_sum(double v) {
    __shared__ double partial[kThreads / 32];
#pragma unroll
    for (int s = 16; s > 0; s >>= 1) v += __shfl_down_sync(0xffffffffu, v, s);
    if ((threadIdx.x & 31) == 0) partial[threadIdx.x >> 5] = v;
    __syncthreads();
    v = 0.0;
    if (threadIdx.x < 32) {
        v = threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : 0.0;
#pragma unroll
        for (int s = 4; s > 0; s >>= 1) v += __shfl_down_sync(0xffffffffu, v, s);
    }
    return v;
}

__device__ __forceinline__ float4 axpy(float a, const float4& p, const float4& x) {
    return make_float4(fmaf(a, p.x, x.x), fmaf(a, p.y, x.y), fmaf(a, p.z, x.z), fmaf(a, p.w, x.w));
}

__global__ void __launch_bounds__(kThreads)
update_solution(float4* __restrict__ x, float4* __restrict__ r, const float4* __restrict__ p,
                const float4* __restrict__ q, float alpha, int n4, double* __restrict__ partial) {
    double rr = 0.0;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n4; i += gridDim.x * kThreads) {
        x[i] = axpy(alpha, p[i], x[i]);
        const float4 res = axpy(-alpha, q[i], r[i]);
        r[i] = res;
        rr += (double)(res.x * res.x + res.y * res.y + res.z * res.z + res.w * res.w);
    }
    rr = block_sum(rr);
    if (threadIdx.x == 0) partial[blockIdx.x] = rr;
}

__global__ void __launch_bounds__(kThreads) finish_norm(const double* __restrict__ partial, int n, double* norm2) {
    double v = 0.0;
    for (int i = threadIdx.x; i < n; i += kThreads) v += partial[i];
    v = block_sum(v);
    if (threadIdx.x == 0) *norm2 = v;
}

__global__ void fill(float* v, int n, uint32_t seed) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint32_t h = (uint32_t)i * 2654435761u + seed;
        h ^= h >> 15;
        h *= 2246822519u;
        v[i] = (float)(h >> 8) * (1.f / 16777216.f) - 0.5f;
    }
}

int main() {
    const int n = 1 << 24;
    const size_t bytes = (size_t)n * sizeof(float);
    float *x, *r, *p, *q;
    double *partial, *norm2;
    CUDA_CHECK(cudaMalloc(&x, bytes));
    CUDA_CHECK(cudaMalloc(&r, bytes));
    CUDA_CHECK(cudaMalloc(&p, bytes));
    CUDA_CHECK(cudaMalloc(&q, bytes));
    fill<<<1056, 256>>>(x, n, 1u);
    fill<<<1056, 256>>>(r, n, 2u);
    fill<<<1056, 256>>>(p, n, 3u);
    fill<<<1056, 256>>>(q, n, 4u);
    CUDA_CHECK(cudaGetLastError());

    int blocks = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0));
    blocks *= 8;
    CUDA_CHECK(cudaMalloc(&partial, blocks * sizeof(double)));
    CUDA_CHECK(cudaMalloc(&norm2, sizeof(double)));
    const float alpha = 1e-3f;
    auto step = [&] {
        update_solution<<<blocks, kThreads>>>((float4*)x, (float4*)r, (const float4*)p, (const float4*)q, alpha, n / 4, partial);
        finish_norm<<<1, kThreads>>>(partial, blocks, norm2);
    };

    // One step from known data is checked on the host before timing.
    std::vector<float> x0(n), r0(n), hp(n), hq(n), x1(n), r1(n);
    CUDA_CHECK(cudaMemcpy(x0.data(), x, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(r0.data(), r, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(hp.data(), p, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(hq.data(), q, bytes, cudaMemcpyDeviceToHost));
    step();
    double got = 0.0, want = 0.0;
    CUDA_CHECK(cudaMemcpy(&got, norm2, sizeof got, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(x1.data(), x, bytes, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(r1.data(), r, bytes, cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 0; i < n; ++i) {
        const float xx = x0[i] + alpha * hp[i], rr = r0[i] - alpha * hq[i];
        if (!(std::fabs(xx - x1[i]) < 1e-6f && std::fabs(rr - r1[i]) < 1e-6f)) ok = false;
        want += (double)rr * rr;
    }
    if (!(std::fabs(got - want) < 1e-5 * want)) ok = false;

    const double us = time_us(step);
    CUDA_CHECK(cudaMemcpy(&got, norm2, sizeof got, cudaMemcpyDeviceToHost));
    std::printf("checksum: %.6f\n", got);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
