// SPDX-License-Identifier: Apache-2.0. Two-band shortwave absorption in a moist atmosphere: for every grid cell the
// absorption coefficients are interpolated in a temperature table, scaled by the
// absorber path, and turned into a heating rate.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int NTAB = 1024;            // entries per band, 180 K .. 320 K
constexpr int NBAND = 2;
constexpr float T_LO = 180.0f;
constexpr float INV_DT = (NTAB - 1) / 140.0f;
constexpr int NCELL = 1 << 24;

__device__ float d_kabs[NBAND][NTAB];

__global__ void make_state(float* temp, float* path)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= NCELL) return;
    unsigned h = i * 2654435761u;
    h ^= h >> 16; h *= 2246822519u; h ^= h >> 13; h *= 3266489917u; h ^= h >> 16;
    // Smooth large-scale field with sub-grid turbulence on top of it.
    float base = 250.0f + 45.0f * sinf(i * 3.1e-6f);
    temp[i] = base + 1.5f * ((h & 0xffff) / 65535.0f);
    path[i] = 0.05f + 0.9f * ((h >> 16) / 65535.0f);
}

__device__ __forceinline__ float absorption(int band, int k, float f)
{
    const float a = d_kabs[band][k], b = d_kabs[band][k + 1];
    return a + f * (b - a);
}

__global__ void __launch_bounds__(256) heating_rate(const float* __restrict__ temp,
                                                    const float* __restrict__ path,
                                                    float* __restrict__ heat)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float x = fminf(fmaxf((temp[i] - T_LO) * INV_DT, 0.0f), NTAB - 1.001f);
    const int k = (int)x;
    const float f = x - k;
    const float u = path[i];

    const float near_ir = 1.0f - __expf(-absorption(0, k, f) * u);
    const float visible = 1.0f - __expf(-absorption(1, k, f) * u);
    heat[i] = 0.42f * near_ir + 0.58f * visible;
}

int main()
{
    std::vector<float> tab(NBAND * NTAB);
    for (int j = 0; j < NTAB; ++j) {
        double t = 140.0 * j / (NTAB - 1);
        tab[j] = (float)(1.8 + 0.9 * std::sin(0.06 * t) + 0.004 * t);
        tab[NTAB + j] = (float)(0.35 + 0.15 * std::cos(0.09 * t) + 0.001 * t);
    }
    CK(cudaMemcpyToSymbol(d_kabs, tab.data(), sizeof(float) * tab.size()));

    float *temp, *path, *heat;
    CK(cudaMalloc(&temp, sizeof(float) * NCELL));
    CK(cudaMalloc(&path, sizeof(float) * NCELL));
    CK(cudaMalloc(&heat, sizeof(float) * NCELL));
    make_state<<<NCELL / 256, 256>>>(temp, path);

    for (int i = 0; i < 2; ++i) heating_rate<<<NCELL / 256, 256>>>(temp, path, heat);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 40;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) heating_rate<<<NCELL / 256, 256>>>(temp, path, heat);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> ht(NCELL), hp(NCELL), hh(NCELL);
    CK(cudaMemcpy(ht.data(), temp, sizeof(float) * NCELL, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(hp.data(), path, sizeof(float) * NCELL, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(hh.data(), heat, sizeof(float) * NCELL, cudaMemcpyDeviceToHost));
    for (int q = 0; q < 20000; ++q) {
        size_t i = ((size_t)q * 40503u * 17u) % NCELL;
        double x = ((double)ht[i] - T_LO) * (double)INV_DT;
        int k = (int)x;
        double f = x - k;
        double ka = tab[k] + f * (tab[k + 1] - tab[k]);
        double kb = tab[NTAB + k] + f * (tab[NTAB + k + 1] - tab[NTAB + k]);
        double r = 0.42 * (1.0 - std::exp(-ka * hp[i])) + 0.58 * (1.0 - std::exp(-kb * hp[i]));
        if (std::fabs(r - hh[i]) > 1e-4) {
            printf("mismatch in cell %zu: %f vs %f\n", i, hh[i], r);
            return 1;
        }
    }
    return 0;
}
