// SPDX-License-Identifier: Apache-2.0
// Macroscopic cross sections for Monte Carlo neutron transport.
// Every neutron asks for one record of the unionised energy grid (1 GB of records of 64
// bytes, 16 reaction channels each) and weighs its channels by the nuclide densities of
// the material at hand. Neutrons reach the grid in no order that could be foreseen. Four
// lanes share a record; each lane keeps four records under way.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr unsigned RECORDS = 1u << 24;
constexpr int CHANNELS = 16;
constexpr int NEUTRONS = 1 << 24;
constexpr int THREADS = 256;
constexpr int LANES = 4;                               // lanes per record
constexpr int UNDERWAY = 4;                            // records per lane group
constexpr int PER_WARP = 32 / LANES * UNDERWAY;

struct Densities { float4 part[LANES]; };

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__host__ __device__ inline float channel(unsigned record, unsigned c) {
    return (mix(record * CHANNELS + c) >> 8) * (1.0f / 16777216.0f);
}
__host__ __device__ inline unsigned grid_point(unsigned neutron) { return mix(neutron ^ 0x5bd1e995u) & (RECORDS - 1); }

__global__ void fill_grid(float* grid, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        grid[i] = channel((unsigned)(i / CHANNELS), (unsigned)(i % CHANNELS));
}
__global__ void fill_neutrons(unsigned* where) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < NEUTRONS) where[i] = grid_point(i);
}

__global__ void __launch_bounds__(THREADS)
lookup(const float4* __restrict__ grid, const unsigned* __restrict__ where, float* __restrict__ sigma, Densities rho) {
    const int lane = threadIdx.x & 31, sub = lane & (LANES - 1), group = lane / LANES;
    const int warp = (blockIdx.x * THREADS + threadIdx.x) >> 5;
    const int first = warp * PER_WARP;
    const float4 d = sub == 0 ? rho.part[0] : sub == 1 ? rho.part[1] : sub == 2 ? rho.part[2] : rho.part[3];

    const unsigned mine = __ldcs(where + first + lane);
    float4 r[UNDERWAY];
#pragma unroll
    for (int u = 0; u < UNDERWAY; ++u) {
        const unsigned rec = __shfl_sync(0xffffffffu, mine, u * (32 / LANES) + group);
        r[u] = __ldg(grid + (size_t)rec * LANES + sub);
    }
    float keep = 0.0f;
#pragma unroll
    for (int u = 0; u < UNDERWAY; ++u) {
        float s = r[u].x * d.x + r[u].y * d.y + r[u].z * d.z + r[u].w * d.w;
        s += __shfl_xor_sync(0xffffffffu, s, 1);
        s += __shfl_xor_sync(0xffffffffu, s, 2);
        if (sub == u) keep = s;
    }
    __stcs(sigma + first + sub * (32 / LANES) + group, keep);
}

int main() {
    static_assert(UNDERWAY == LANES && PER_WARP == 32, "one result per lane");
    const int iterations = 30;
    float4* grid; unsigned* where; float* sigma;
    CK(cudaMalloc(&grid, (size_t)RECORDS * CHANNELS * sizeof(float)));
    CK(cudaMalloc(&where, NEUTRONS * sizeof(unsigned)));
    CK(cudaMalloc(&sigma, NEUTRONS * sizeof(float)));
    fill_grid<<<4096, 256>>>(reinterpret_cast<float*>(grid), (size_t)RECORDS * CHANNELS);
    fill_neutrons<<<NEUTRONS / 256, 256>>>(where);
    CK(cudaMemset(sigma, 0, NEUTRONS * sizeof(float)));
    CK(cudaGetLastError());

    Densities rho;
    float flat[CHANNELS];
    for (int c = 0; c < CHANNELS; ++c) flat[c] = 0.01f * (c + 1);
    for (int l = 0; l < LANES; ++l) rho.part[l] = make_float4(flat[4 * l], flat[4 * l + 1], flat[4 * l + 2], flat[4 * l + 3]);

    const int blocks = NEUTRONS / THREADS;
    lookup<<<blocks, THREADS>>>(grid, where, sigma, rho);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) lookup<<<blocks, THREADS>>>(grid, where, sigma, rho);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> got(NEUTRONS);
    CK(cudaMemcpy(got.data(), sigma, NEUTRONS * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (unsigned i = 0; i < NEUTRONS; i += 2011) {
        double want = 0.0;
        for (int c = 0; c < CHANNELS; ++c) want += (double)channel(grid_point(i), c) * flat[c];
        if (!(std::fabs(got[i] - want) <= 1e-4 * want)) ++bad;
    }
    std::printf("cross sections out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
