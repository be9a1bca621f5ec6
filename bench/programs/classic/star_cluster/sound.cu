// SPDX-License-Identifier: Apache-2.0
// Direct-sum gravity of a star cluster with softening, followed by a kick.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CALL(x)                                                                       \
    if (cudaError_t status = (x); status != cudaSuccess) {                                 \
        std::fprintf(stderr, "error in line %d: %s\n", __LINE__, cudaGetErrorString(status)); \
        std::exit(2);                                                                      \
    }

constexpr int kStars = 67584;   // 132 x 512
constexpr int kThreads = 256;
constexpr int kOwn = 2;         // targets per thread
constexpr float kSoft2 = 1e-4f;

__device__ __forceinline__ void attract(float4 me, float4 other, float3& a) {
    const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    const float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, kSoft2)));
    float inv;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inv) : "f"(r2));
    const float s = other.w * inv * inv * inv;
    a.x = fmaf(s, dx, a.x);
    a.y = fmaf(s, dy, a.y);
    a.z = fmaf(s, dz, a.z);
}

// blockIdx.y takes one part of the sources; the parts are added up by `kick`.
__global__ void __launch_bounds__(kThreads)
gravity(const float4* __restrict__ stars, float4* __restrict__ partial, int part) {
    __shared__ float4 tile[kThreads];
    const int base = blockIdx.x * kThreads * kOwn + threadIdx.x;
    float4 me[kOwn];
    float3 a[kOwn];
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
        me[k] = stars[base + k * kThreads];
        a[k] = make_float3(0.f, 0.f, 0.f);
    }
    const int from = blockIdx.y * part;
    for (int j0 = from; j0 < from + part; j0 += kThreads) {
        tile[threadIdx.x] = stars[j0 + threadIdx.x];
        __syncthreads();
#pragma unroll 16
        for (int j = 0; j < kThreads; ++j) {
            const float4 other = tile[j];
#pragma unroll
            for (int k = 0; k < kOwn; ++k) attract(me[k], other, a[k]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < kOwn; ++k)
        partial[(size_t)blockIdx.y * kStars + base + k * kThreads] = make_float4(a[k].x, a[k].y, a[k].z, 0.f);
}

__global__ void __launch_bounds__(kThreads)
kick(const float4* __restrict__ partial, int parts, float4* __restrict__ velocity, float dt) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    float4 v = velocity[i];
    for (int p = 0; p < parts; ++p) {
        const float4 a = partial[(size_t)p * kStars + i];
        v.x = fmaf(dt, a.x, v.x);
        v.y = fmaf(dt, a.y, v.y);
        v.z = fmaf(dt, a.z, v.z);
    }
    velocity[i] = v;
}

int main() {
    std::vector<float4> stars(kStars), velocity(kStars);
    uint32_t s = 4711u;
    auto rnd = [&s] { s = s * 1664525u + 1013904223u; return (float)(s >> 8) * (2.f / 16777216.f) - 1.f; };
    for (auto& q : stars) q = make_float4(rnd(), rnd(), rnd(), (1.5f + rnd()) / kStars);
    float4 *d_stars, *d_partial, *d_velocity;
    const int parts = 6, part = kStars / parts;   // 44 tiles of 256 each
    CUDA_CALL(cudaMalloc(&d_stars, kStars * sizeof(float4)));
    CUDA_CALL(cudaMalloc(&d_velocity, kStars * sizeof(float4)));
    CUDA_CALL(cudaMalloc(&d_partial, (size_t)parts * kStars * sizeof(float4)));
    CUDA_CALL(cudaMemcpy(d_stars, stars.data(), kStars * sizeof(float4), cudaMemcpyHostToDevice));
    CUDA_CALL(cudaMemset(d_velocity, 0, kStars * sizeof(float4)));

    const dim3 grid(kStars / (kThreads * kOwn), parts);
    auto step = [&] {
        gravity<<<grid, kThreads>>>(d_stars, d_partial, part);
        kick<<<kStars / kThreads, kThreads>>>(d_partial, parts, d_velocity, 1e-3f);
    };
    step();
    CUDA_CALL(cudaMemcpy(velocity.data(), d_velocity, kStars * sizeof(float4), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 5; i < kStars; i += 1009) {
        double a[3] = {};
        for (int j = 0; j < kStars; ++j) {
            const double dx = (double)stars[j].x - stars[i].x, dy = (double)stars[j].y - stars[i].y, dz = (double)stars[j].z - stars[i].z;
            const double r2 = dx * dx + dy * dy + dz * dz + kSoft2, w = stars[j].w / (r2 * std::sqrt(r2));
            a[0] += w * dx; a[1] += w * dy; a[2] += w * dz;
        }
        const float got[3] = {velocity[i].x, velocity[i].y, velocity[i].z};
        for (int d = 0; d < 3; ++d)
            if (!(std::fabs(1e-3 * a[d] - got[d]) < 1e-6 + 1e-6 * std::fabs(a[d]))) ok = false;
    }
    cudaEvent_t t0, t1;
    CUDA_CALL(cudaEventCreate(&t0));
    CUDA_CALL(cudaEventCreate(&t1));
    const int steps = 60;
    CUDA_CALL(cudaEventRecord(t0));
    for (int i = 0; i < steps; ++i) step();
    CUDA_CALL(cudaEventRecord(t1));
    CUDA_CALL(cudaEventSynchronize(t1));
    CUDA_CALL(cudaGetLastError());
    float ms = 0.f;
    CUDA_CALL(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / steps);
    return ok ? 0 : 1;
}
