// SPDX-License-Identifier: Apache-2.0
// Screened Coulomb energy of every particle with all later particles of the list.
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

constexpr int kRows = 4;       // particles a warp treats together
constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ float pair_term(const float4& a, const float4& b) {
    const float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
    const float r2 = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, 0.01f)));
    const float inv = rsqrtf(r2);
    return b.w * inv * fmaf(0.25f * inv, inv, 1.f);
}

__global__ void __launch_bounds__(kThreads)
later_energy(const float4* __restrict__ particle, float* __restrict__ energy, int n) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int groups = n / kRows;
    for (int g = blockIdx.x + gridDim.x * warp; g < groups; g += gridDim.x * kWarps) {
        float4 mine[kRows];
        float sum[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            mine[r] = particle[g * kRows + r];
            sum[r] = 0.f;
        }
        // The few pairs inside the group.
        if (lane < kRows) {
            const float4 other = particle[g * kRows + lane];
#pragma unroll
            for (int r = 0; r < kRows; ++r)
                if (lane > r) sum[r] = pair_term(mine[r], other);
        }
#pragma unroll 2
        for (int j = (g + 1) * kRows + lane; j < n; j += 32) {
            const float4 other = particle[j];
#pragma unroll
            for (int r = 0; r < kRows; ++r) sum[r] += pair_term(mine[r], other);
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int s = 16; s > 0; s >>= 1) sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], s);
        }
        if (lane == 0) {
#pragma unroll
            for (int r = 0; r < kRows; ++r) energy[g * kRows + r] = sum[r] * mine[r].w;
        }
    }
}

int main() {
    const int n = 65536;
    std::vector<float4> particle(n);
    uint32_t s = 2024u;
    auto uniform = [&] {
        s = s * 1664525u + 1013904223u;
        return (float)(s >> 8) * (1.f / 16777216.f);
    };
    for (auto& p : particle) {
        p.x = 10.f * uniform();
        p.y = 10.f * uniform();
        p.z = 10.f * uniform();
        p.w = 0.5f + uniform();
    }
    float4* d_particle;
    float* d_energy;
    CUDA_CHECK(cudaMalloc(&d_particle, n * sizeof(float4)));
    CUDA_CHECK(cudaMalloc(&d_energy, n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_particle, particle.data(), n * sizeof(float4), cudaMemcpyHostToDevice));

    int sms = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const double us = time_us([&] { later_energy<<<sms, kThreads>>>(d_particle, d_energy, n); });

    std::vector<float> energy(n);
    CUDA_CHECK(cudaMemcpy(energy.data(), d_energy, n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 0; i < n; i += 401) {
        double sum = 0.0;
        for (int j = i + 1; j < n; ++j) {
            const double dx = particle[i].x - particle[j].x, dy = particle[i].y - particle[j].y,
                         dz = particle[i].z - particle[j].z;
            const double inv = 1.0 / std::sqrt(dx * dx + dy * dy + dz * dz + 0.01);
            sum += particle[j].w * inv * (1.0 + 0.25 * inv * inv);
        }
        sum *= particle[i].w;
        if (!(std::fabs(sum - energy[i]) <= 1e-3 * std::fabs(sum) + 1e-4)) ok = false;
    }
    double checksum = 0.0;
    for (float e : energy) checksum += e;
    std::printf("checksum: %.2f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
