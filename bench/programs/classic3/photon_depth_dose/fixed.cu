// SPDX-License-Identifier: Apache-2.0. Primary photon depth dose in a segmented voxel phantom.
// Parallel beam along z; every voxel carries a tissue index, the tables give
// the linear attenuation and the mass energy absorption at the beam energy.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kNx = 512, kNy = 512, kNz = 256;
constexpr int kTissues = 12;
constexpr float kDz = 0.1f;          // cm
constexpr float kFluence = 100.0f;

__constant__ float c_mu[kTissues];       // 1/cm
__constant__ float c_mu_en[kTissues];    // cm^2/g

__host__ __device__ inline uint32_t scramble(uint32_t h)
{
    h ^= h >> 16; h *= 0x7feb352du;
    h ^= h >> 15; h *= 0x846ca68bu;
    return h ^ (h >> 16);
}

// trabecular structure: cells of four voxels on a side
__host__ __device__ inline uint8_t tissue_at(int x, int y, int z)
{
    uint32_t cell = (uint32_t(z >> 2) * (kNy / 4) + uint32_t(y >> 2)) * (kNx / 4) + uint32_t(x >> 2);
    return uint8_t(scramble(cell + 17u) % kTissues);
}

__global__ void build_phantom(uint8_t* label)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y, z = blockIdx.z;
    label[(size_t(z) * kNy + y) * kNx + x] = tissue_at(x, y, z);
}

// One ray per thread, from the entrance plane downwards.
__global__ void depth_dose(const uint8_t* __restrict__ label, float* __restrict__ dose,
                           float fluence0)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y;
    const size_t plane = size_t(kNx) * kNy;
    const size_t ray = size_t(y) * kNx + x;

    __shared__ float s_mu[kTissues], s_mu_en[kTissues];
    if (threadIdx.x < kTissues) {
        s_mu[threadIdx.x] = c_mu[threadIdx.x];
        s_mu_en[threadIdx.x] = c_mu_en[threadIdx.x];
    }
    __syncthreads();

    float phi = fluence0;
#pragma unroll 8
    for (int z = 0; z < kNz; ++z) {
        const int t = label[z * plane + ray];
        const float out = phi * __expf(-s_mu[t] * kDz);
        dose[z * plane + ray] = 0.5f * (phi + out) * s_mu_en[t];
        phi = out;
    }
}

int main()
{
    float mu[kTissues], mu_en[kTissues];
    for (int t = 0; t < kTissues; ++t) {
        mu[t] = 0.05f + 0.024f * t;
        mu_en[t] = 0.025f + 0.0015f * ((t * 5) % kTissues);
    }
    CHECK(cudaMemcpyToSymbol(c_mu, mu, sizeof mu));
    CHECK(cudaMemcpyToSymbol(c_mu_en, mu_en, sizeof mu_en));

    const size_t voxels = size_t(kNx) * kNy * kNz;
    uint8_t* label; float* dose;
    CHECK(cudaMalloc(&label, voxels));
    CHECK(cudaMalloc(&dose, voxels * sizeof(float)));
    build_phantom<<<dim3(kNx / 256, kNy, kNz), 256>>>(label);
    CHECK(cudaGetLastError());

    const dim3 grid(kNx / 256, kNy);
    for (int i = 0; i < 2; ++i) depth_dose<<<grid, 256>>>(label, dose, kFluence);
    CHECK(cudaDeviceSynchronize());

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    CHECK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) depth_dose<<<grid, 256>>>(label, dose, kFluence);
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    // sixteen rays against the host
    for (int k = 0; k < 16; ++k) {
        const int x = (k * 97 + 5) % kNx, y = (k * 211 + 31) % kNy;
        std::vector<float> line(kNz);
        CHECK(cudaMemcpy2D(line.data(), sizeof(float), dose + size_t(y) * kNx + x,
                           sizeof(float) * kNx * kNy, sizeof(float), kNz, cudaMemcpyDeviceToHost));
        double phi = kFluence;
        for (int z = 0; z < kNz; ++z) {
            const int t = tissue_at(x, y, z);
            const double out = phi * std::exp(-double(mu[t]) * kDz);
            const double want = 0.5 * (phi + out) * mu_en[t];
            if (!(std::fabs(line[z] - want) <= 1e-3 * want)) {
                std::printf("ray (%d,%d) depth %d: %g, expected %g\n", x, y, z, line[z], want);
                return 1;
            }
            phi = out;
        }
    }
    return 0;
}
