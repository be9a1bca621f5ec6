// SPDX-License-Identifier: Apache-2.0. FitzHugh-Nagumo action potentials along unmyelinated axons.
// One axon per block, 64 compartments per warp.  The warps of an axon run
// free of block barriers: each posts its end compartments for the adjacent
// warps and waits for theirs only.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kAxons = 264, kWarps = 8, kCompartments = kWarps * 64;
constexpr int kSteps = 500;
constexpr float kDt = 0.02f, kCoupling = 12.0f;
constexpr float kA = 0.7f, kB = 0.8f, kEps = 0.08f;
constexpr float kRestV = -1.1994f, kRestW = -0.6243f;

__host__ __device__ inline float stimulus(int axon, int compartment)
{
    return compartment < 12 ? 0.8f + 0.001f * (axon % 200) : 0.0f;
}

__device__ __forceinline__ void fhn(float v, float w, float current, float& dv, float& dw)
{
    dv = v - v * v * v * (1.0f / 3.0f) - w + current;
    dw = kEps * (v + kA - kB * w);
}

__global__ void __launch_bounds__(kWarps * 32)
propagate(float2* __restrict__ v_out, float2* __restrict__ w_out)
{
    __shared__ volatile float first[2][kWarps], last[2][kWarps];
    __shared__ volatile int posted[kWarps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int axon = blockIdx.x, c0 = 2 * threadIdx.x;

    if (lane == 0) posted[warp] = 0;
    __syncthreads();

    const float i0 = stimulus(axon, c0), i1 = stimulus(axon, c0 + 1);
    float v0 = kRestV, v1 = kRestV, w0 = kRestW, w1 = kRestW;
    for (int step = 0; step < kSteps; ++step) {
        const int slot = step & 1;
        if (lane == 0) first[slot][warp] = v0;
        if (lane == 31) last[slot][warp] = v1;
        __threadfence();
        __syncwarp();
        if (lane == 0) posted[warp] = step + 1;

        float dv0, dw0, dv1, dw1;
        fhn(v0, w0, i0, dv0, dw0);
        fhn(v1, w1, i1, dv1, dw1);
        float left = __shfl_up_sync(~0u, v1, 1);
        float right = __shfl_down_sync(~0u, v0, 1);
        if (lane == 0) {
            left = v0;
            if (warp > 0) {
                while (posted[warp - 1] <= step) { }
                left = last[slot][warp - 1];
            }
        }
        if (lane == 31) {
            right = v1;
            if (warp < kWarps - 1) {
                while (posted[warp + 1] <= step) { }
                right = first[slot][warp + 1];
            }
        }
        __syncwarp();
        dv0 += kCoupling * (left - 2.0f * v0 + v1);
        dv1 += kCoupling * (v0 - 2.0f * v1 + right);
        v0 += kDt * dv0; w0 += kDt * dw0;
        v1 += kDt * dv1; w1 += kDt * dw1;
    }
    const int o = axon * (kCompartments / 2) + threadIdx.x;
    v_out[o] = make_float2(v0, v1);
    w_out[o] = make_float2(w0, w1);
}

int main()
{
    const size_t n = size_t(kAxons) * kCompartments;
    float *v, *w;
    CHECK(cudaMalloc(&v, n * sizeof(float)));
    CHECK(cudaMalloc(&w, n * sizeof(float)));
    CHECK(cudaMemset(v, 0, n * sizeof(float)));
    CHECK(cudaMemset(w, 0, n * sizeof(float)));

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    for (int i = -2; i < iterations; ++i) {
        if (i == 0) CHECK(cudaEventRecord(t0));
        propagate<<<kAxons, kWarps * 32>>>(reinterpret_cast<float2*>(v), reinterpret_cast<float2*>(w));
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float> got_v(n), got_w(n);
    CHECK(cudaMemcpy(got_v.data(), v, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got_w.data(), w, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int axon : {0, 1, 77, 131, 200, kAxons - 1}) {
        std::vector<double> a(kCompartments, kRestV), b(kCompartments, kRestW), na(a);
        for (int step = 0; step < kSteps; ++step) {
            for (int c = 0; c < kCompartments; ++c) {
                const double l = c > 0 ? a[c - 1] : a[c], r = c + 1 < kCompartments ? a[c + 1] : a[c];
                const double dv = a[c] - a[c] * a[c] * a[c] / 3.0 - b[c] + stimulus(axon, c) +
                                  kCoupling * (l - 2.0 * a[c] + r);
                na[c] = a[c] + kDt * dv;
                b[c] += kDt * kEps * (a[c] + double(kA) - kB * b[c]);
            }
            a.swap(na);
        }
        for (int c = 0; c < kCompartments; ++c) {
            const size_t i = size_t(axon) * kCompartments + c;
            if (!(std::fabs(got_v[i] - a[c]) < 2e-2 && std::fabs(got_w[i] - b[c]) < 2e-2)) {
                std::printf("axon %d compartment %d: v %g, expected %g\n", axon, c, got_v[i], a[c]);
                return 1;
            }
        }
    }
    return 0;
}
