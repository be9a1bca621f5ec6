// SPDX-License-Identifier: Apache-2.0. Surface energy balance of a single-layer snowpack on a global grid: one step of
// cold content, liquid water and snow water equivalent for every cell.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int CELLS = 132 * 1024 * 128;          // 17.3 million
constexpr float DT = 1800.0f, LF = 3.34e5f, CI = 2100.0f, SIGMA = 5.67e-8f;

__global__ void make_forcing(float* tair, float* sw, float* swe, float* albedo)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= CELLS) return;
    unsigned h = i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    tair[i] = 263.0f + 14.0f * ((h & 0xff) / 255.0f);
    sw[i] = 350.0f * (((h >> 8) & 0xff) / 255.0f);
    swe[i] = 20.0f + 180.0f * (((h >> 16) & 0xff) / 255.0f);
    albedo[i] = 0.5f + 0.35f * ((h >> 24) / 255.0f);
}

__host__ __device__ inline void cell_step(float tair, float sw, float swe, float albedo,
                                          float& melt, float& left)
{
    const float t2 = tair * tair;
    const float down = 0.78f * SIGMA * t2 * t2, up = 0.98f * SIGMA * 5.567e9f;   // snow at 273.15 K
    const float net = (1.0f - albedo) * sw + down - up + 12.0f * (tair - 273.15f);
    const float cold = CI * swe * fmaxf(273.15f - tair, 0.0f) * 0.02f;
    const float energy = fmaxf(net * DT - cold, 0.0f);
    melt = fminf(energy * (1.0f / LF), swe);
    left = swe - melt;
}

__global__ void __launch_bounds__(256) snow_step(const float4* __restrict__ tair,
                                                 const float4* __restrict__ sw,
                                                 const float4* __restrict__ swe,
                                                 const float4* __restrict__ albedo,
                                                 float4* __restrict__ melt,
                                                 float4* __restrict__ left)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float4 t = __ldcs(tair + i), s = __ldcs(sw + i), w = __ldcs(swe + i), a = __ldcs(albedo + i);
    float4 m, l;
    cell_step(t.x, s.x, w.x, a.x, m.x, l.x);
    cell_step(t.y, s.y, w.y, a.y, m.y, l.y);
    cell_step(t.z, s.z, w.z, a.z, m.z, l.z);
    cell_step(t.w, s.w, w.w, a.w, m.w, l.w);
    __stcs(melt + i, m);
    __stcs(left + i, l);
}

int main()
{
    float* f[6];
    for (auto& p : f) CK(cudaMalloc(&p, CELLS * sizeof(float)));
    make_forcing<<<CELLS / 256, 256>>>(f[0], f[1], f[2], f[3]);
    auto step = [&] {
        snow_step<<<CELLS / 1024, 256>>>((float4*)f[0], (float4*)f[1], (float4*)f[2],
                                         (float4*)f[3], (float4*)f[4], (float4*)f[5]);
    };
    step();
    step();
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 40;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> h[6];
    for (int k = 0; k < 6; ++k) {
        h[k].resize(CELLS);
        CK(cudaMemcpy(h[k].data(), f[k], CELLS * sizeof(float), cudaMemcpyDeviceToHost));
    }
    for (int q = 0; q < 100000; ++q) {
        int i = (int)(((long long)q * 1000003) % CELLS);
        float m, l;
        cell_step(h[0][i], h[1][i], h[2][i], h[3][i], m, l);
        if (std::fabs(m - h[4][i]) > 1e-3f || std::fabs(l - h[5][i]) > 1e-3f) {
            printf("mismatch in cell %d: %f %f vs %f %f\n", i, h[4][i], h[5][i], m, l);
            return 1;
        }
    }
    return 0;
}
