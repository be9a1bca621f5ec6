// SPDX-License-Identifier: Apache-2.0
// Softened gravitational field and potential of point masses at a large set of probe positions.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                                              \
    do {                                                                                   \
        cudaError_t e_ = (x);                                                              \
        if (e_ != cudaSuccess) {                                                           \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

namespace field {

template <bool Potential>
struct Accumulator;
template <>
struct Accumulator<false> {
    float x = 0, y = 0, z = 0;
    __device__ __forceinline__ void add(float dx, float dy, float dz, float inv, float mass) {
        const float s = mass * inv * (inv * inv);
        x = fmaf(dx, s, x);
        y = fmaf(dy, s, y);
        z = fmaf(dz, s, z);
    }
    __device__ __forceinline__ float4 value() const { return make_float4(x, y, z, 0.0f); }
};
template <>
struct Accumulator<true> {
    float x = 0, y = 0, z = 0, w = 0;
    __device__ __forceinline__ void add(float dx, float dy, float dz, float inv, float mass) {
        const float mi = mass * inv, s = mi * (inv * inv);
        w -= mi;
        x = fmaf(dx, s, x);
        y = fmaf(dy, s, y);
        z = fmaf(dz, s, z);
    }
    __device__ __forceinline__ float4 value() const { return make_float4(x, y, z, w); }
};

__device__ __forceinline__ float rsqrt_fast(float v) {
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ void copy16(float4* dst, const float4* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(uint32_t(__cvta_generic_to_shared(dst))), "l"(src));
}

template <int Threads, int PerThread, bool Potential>
__global__ void __launch_bounds__(Threads, 2)
    gravity_field(const float4* __restrict__ probes, const float4* __restrict__ sources, float4* __restrict__ out,
                  int n_sources, float eps2) {
    constexpr int kTile = Threads;
    __shared__ float4 tile[2][kTile];
    const int first = blockIdx.x * Threads * PerThread + threadIdx.x;
    float px[PerThread], py[PerThread], pz[PerThread];
    Accumulator<Potential> acc[PerThread];
#pragma unroll
    for (int i = 0; i < PerThread; ++i) {
        const float4 p = probes[first + i * Threads];
        px[i] = p.x, py[i] = p.y, pz[i] = p.z;
    }
    const int tiles = n_sources / kTile;
    copy16(&tile[0][threadIdx.x], sources + threadIdx.x);
    asm volatile("cp.async.commit_group;\n");
    for (int t = 0; t < tiles; ++t) {
        asm volatile("cp.async.wait_group 0;\n" ::: "memory");
        __syncthreads();
        if (t + 1 < tiles) copy16(&tile[(t + 1) & 1][threadIdx.x], sources + (t + 1) * kTile + threadIdx.x);
        asm volatile("cp.async.commit_group;\n");
        const float4* cur = tile[t & 1];
#pragma unroll 8
        for (int j = 0; j < kTile; ++j) {
            const float4 s = cur[j];
#pragma unroll
            for (int i = 0; i < PerThread; ++i) {
                const float dx = s.x - px[i], dy = s.y - py[i], dz = s.z - pz[i];
                const float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2)));
                acc[i].add(dx, dy, dz, rsqrt_fast(r2), s.w);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < PerThread; ++i) out[first + i * Threads] = acc[i].value();
}

template <bool Potential>
void launch(const float4* p, const float4* s, float4* out, int blocks, int n_sources, float eps2) {
    gravity_field<512, 4, Potential><<<blocks, 512>>>(p, s, out, n_sources, eps2);
    CK(cudaGetLastError());
}

}  // namespace field

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

int main(int argc, char**) {
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int blocks = 2 * sms, n_probes = blocks * 512 * 4, n_sources = 4096, iters = 60;
    const float eps2 = 1e-3f;
    const bool potential = argc > 1;
    std::vector<float4> p(n_probes), s(n_sources);
    for (int i = 0; i < n_probes; ++i)
        p[i] = make_float4(unit(3 * i), unit(3 * i + 1), unit(3 * i + 2), 0.0f);
    for (int i = 0; i < n_sources; ++i)
        s[i] = make_float4(unit(0x40000000u + 4 * i), unit(0x40000001u + 4 * i), unit(0x40000002u + 4 * i),
                           0.5f + unit(0x40000003u + 4 * i));
    float4 *dp, *ds, *dout;
    CK(cudaMalloc(&dp, p.size() * sizeof(float4)));
    CK(cudaMalloc(&ds, s.size() * sizeof(float4)));
    CK(cudaMalloc(&dout, p.size() * sizeof(float4)));
    CK(cudaMemcpy(dp, p.data(), p.size() * sizeof(float4), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(ds, s.data(), s.size() * sizeof(float4), cudaMemcpyHostToDevice));
    auto step = [&] {
        if (potential)
            field::launch<true>(dp, ds, dout, blocks, n_sources, eps2);
        else
            field::launch<false>(dp, ds, dout, blocks, n_sources, eps2);
    };
    for (int i = 0; i < 5; ++i) step();
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::vector<float4> out(n_probes);
    CK(cudaMemcpy(out.data(), dout, out.size() * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n_probes; i += 1777) {
        double x = 0, y = 0, z = 0, w = 0;
        for (const float4& q : s) {
            double dx = double(q.x) - p[i].x, dy = double(q.y) - p[i].y, dz = double(q.z) - p[i].z;
            double inv = 1.0 / std::sqrt(dx * dx + dy * dy + dz * dz + eps2), m = q.w * inv * inv * inv;
            x += dx * m, y += dy * m, z += dz * m, w -= q.w * inv;
        }
        const double tol = 1e-3 * (std::fabs(x) + std::fabs(y) + std::fabs(z)) + 0.5;
        if (!(std::fabs(x - out[i].x) < tol) || !(std::fabs(y - out[i].y) < tol) || !(std::fabs(z - out[i].z) < tol) ||
            (potential && !(std::fabs(w - out[i].w) < 1e-3 * std::fabs(w)))) {
            std::printf("mismatch probe %d: %g %g %g vs %g %g %g\n", i, out[i].x, out[i].y, out[i].z, x, y, z);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
