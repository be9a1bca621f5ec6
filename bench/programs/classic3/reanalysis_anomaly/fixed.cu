// SPDX-License-Identifier: Apache-2.0. Standardised anomalies of a packed reanalysis field.  The 16-bit values of a
// (level, lat, lon) cube are unpacked with their level's scale and offset, the
// climatology is taken off, and the result is weighted by the cosine of latitude.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

struct Grid { int nlon, nlat, nlev; };

constexpr int THREADS = 480;

__global__ void make_fields(short* packed, float* clim, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned h = (unsigned)i * 2654435761u;
    h ^= h >> 16; h *= 2246822519u; h ^= h >> 13;
    packed[i] = (short)(int(h & 0xffff) - 32768);
    clim[i] = 250.0f + 0.0005f * (float)(h >> 16);
}

__global__ void __launch_bounds__(THREADS) anomaly(const short* __restrict__ packed,
                                                   const float* __restrict__ clim,
                                                   const float2* __restrict__ scaling,
                                                   const float* __restrict__ coslat,
                                                   const float* __restrict__ lonmask,
                                                   float* __restrict__ out, Grid g)
{
    const int lon = blockIdx.x * blockDim.x + threadIdx.x, lat = blockIdx.y, lev = blockIdx.z;
    if (lon >= g.nlon) return;
    const long long i = ((long long)lev * g.nlat + lat) * g.nlon + lon;

    const float2 s = scaling[lev];
    const float value = s.x * packed[i] + s.y;
    out[i] = (value - clim[i]) * coslat[lat] * lonmask[lon];
}

int main()
{
    const Grid g = {1440, 721, 37};
    const long long n = (long long)g.nlon * g.nlat * g.nlev;

    std::vector<float2> scaling(g.nlev);
    std::vector<float> coslat(g.nlat), mask(g.nlon);
    for (int l = 0; l < g.nlev; ++l) scaling[l] = make_float2(0.0011f + 1e-5f * l, 255.0f - 0.4f * l);
    for (int j = 0; j < g.nlat; ++j) coslat[j] = (float)std::cos((j * 0.25 - 90.0) * 3.14159265358979 / 180.0);
    for (int k = 0; k < g.nlon; ++k) mask[k] = k % 9 == 0 ? 0.5f : 1.0f;

    short* packed;
    float *clim, *out, *d_cos, *d_mask;
    float2* d_scal;
    CK(cudaMalloc(&packed, n * sizeof(short)));
    CK(cudaMalloc(&clim, n * sizeof(float)));
    CK(cudaMalloc(&out, n * sizeof(float)));
    CK(cudaMalloc(&d_scal, g.nlev * sizeof(float2)));
    CK(cudaMalloc(&d_cos, g.nlat * sizeof(float)));
    CK(cudaMalloc(&d_mask, g.nlon * sizeof(float)));
    CK(cudaMemcpy(d_scal, scaling.data(), g.nlev * sizeof(float2), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_cos, coslat.data(), g.nlat * sizeof(float), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_mask, mask.data(), g.nlon * sizeof(float), cudaMemcpyHostToDevice));
    make_fields<<<(unsigned)((n + 255) / 256), 256>>>(packed, clim, n);

    const dim3 blocks((g.nlon + THREADS - 1) / THREADS, g.nlat, g.nlev);
    for (int i = 0; i < 2; ++i)
        anomaly<<<blocks, THREADS>>>(packed, clim, d_scal, d_cos, d_mask, out, g);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 40;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i)
        anomaly<<<blocks, THREADS>>>(packed, clim, d_scal, d_cos, d_mask, out, g);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<short> hp(n);
    std::vector<float> hc(n), ho(n);
    CK(cudaMemcpy(hp.data(), packed, n * sizeof(short), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(hc.data(), clim, n * sizeof(float), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(ho.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (long long q = 0; q < 50000; ++q) {
        int lon = (int)((q * 131) % g.nlon), lat = (int)((q * 17) % g.nlat), lev = (int)(q % g.nlev);
        long long i = ((long long)lev * g.nlat + lat) * g.nlon + lon;
        double r = ((double)scaling[lev].x * hp[i] + scaling[lev].y - hc[i]) * coslat[lat] * mask[lon];
        if (std::fabs(r - ho[i]) > 1e-3) {
            printf("mismatch at lev %d lat %d lon %d: %f vs %f\n", lev, lat, lon, ho[i], r);
            return 1;
        }
    }
    return 0;
}
