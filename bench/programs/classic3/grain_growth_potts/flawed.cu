// SPDX-License-Identifier: Apache-2.0. Monte Carlo Potts model of normal grain growth on a periodic square lattice.
// Checkerboard sublattices; a visit makes several attempts to take over the
// orientation of one of the four neighbours.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kW = 4096, kH = 2048;
constexpr int kOrientations = 48;
constexpr int kAttempts = 8;
constexpr float kInvT = 2.5f;

__host__ __device__ inline uint32_t mix(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__host__ __device__ inline int bonds(int q, int n, int e, int s, int w)
{
    return (q == n) + (q == e) + (q == s) + (q == w);
}

__host__ __device__ inline int visit(int q, int n, int e, int s, int w, uint32_t seed)
{
#pragma unroll
    for (int a = 0; a < kAttempts; ++a) {
        const uint32_t r = mix(seed + a * 0x9e3779b9u);
        const int pick = r & 3;
        const int cand = pick == 0 ? n : pick == 1 ? e : pick == 2 ? s : w;
        const int dE = bonds(q, n, e, s, w) - bonds(cand, n, e, s, w);
        const float u = (r >> 8) * (1.0f / 16777216.0f);
#ifdef __CUDA_ARCH__
        const float p = __expf(-kInvT * dE);
#else
        const float p = std::exp(-kInvT * dE);
#endif
        q = u < p ? cand : q;
    }
    return q;
}

__host__ __device__ inline uint32_t site_seed(int x, int y, uint32_t sweep)
{
    return mix(uint32_t(y * kW + x) ^ (sweep * 0x85ebca6bu));
}

__global__ void seed_lattice(uint8_t* spin)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    spin[i] = uint8_t(mix(i + 7u) % kOrientations);
}

__global__ void potts_half_sweep(uint8_t* spin, int colour, uint32_t sweep)
{
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (((x + y) & 1) != colour) return;
    const int up = (y - 1) & (kH - 1), down = (y + 1) & (kH - 1);
    const int left = (x - 1) & (kW - 1), right = (x + 1) & (kW - 1);
    spin[y * kW + x] = uint8_t(visit(spin[y * kW + x], spin[up * kW + x], spin[y * kW + right],
                                     spin[down * kW + x], spin[y * kW + left],
                                     site_seed(x, y, sweep)));
}

static void half_sweep(uint8_t* spin, int colour, uint32_t sweep)
{
    const dim3 block(32, 8);
    const dim3 grid(kW / 32, kH / 8);
    potts_half_sweep<<<grid, block>>>(spin, colour, sweep);
}

int main()
{
    const size_t sites = size_t(kW) * kH;
    uint8_t* spin;
    CHECK(cudaMalloc(&spin, sites));
    seed_lattice<<<sites / 256, 256>>>(spin);
    CHECK(cudaGetLastError());

    // the first half sweeps double as the test against the host
    std::vector<uint8_t> before(sites), after(sites);
    uint32_t sweep = 0;
    int wrong = 0;
    for (int colour = 0; colour < 2; ++colour) {
        CHECK(cudaMemcpy(before.data(), spin, sites, cudaMemcpyDeviceToHost));
        half_sweep(spin, colour, sweep);
        CHECK(cudaMemcpy(after.data(), spin, sites, cudaMemcpyDeviceToHost));
        for (int k = 0; k < 40000; ++k) {
            const uint32_t i = mix(k * 31u + 3u) % uint32_t(sites);
            const int x = i % kW, y = i / kW;
            int want = before[i];
            if (((x + y) & 1) == colour)
                want = visit(before[i], before[((y - 1) & (kH - 1)) * kW + x],
                             before[y * kW + ((x + 1) & (kW - 1))],
                             before[((y + 1) & (kH - 1)) * kW + x],
                             before[y * kW + ((x - 1) & (kW - 1))], site_seed(x, y, sweep));
            wrong += want != after[i];
        }
    }
    if (wrong > 8) {
        std::printf("%d of 80000 sites disagree with the host\n", wrong);
        return 1;
    }

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    for (int i = -2; i < iterations; ++i) {
        if (i == 0) CHECK(cudaEventRecord(t0));
        ++sweep;
        half_sweep(spin, 0, sweep);
        half_sweep(spin, 1, sweep);
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    // curvature drives the boundary density down
    CHECK(cudaMemcpy(after.data(), spin, sites, cudaMemcpyDeviceToHost));
    size_t like = 0;
    for (size_t i = 0; i + 1 < sites; ++i) like += after[i] == after[i + 1];
    if (like < sites / 3) { std::printf("no coarsening: %zu like pairs\n", like); return 1; }
    return 0;
}
