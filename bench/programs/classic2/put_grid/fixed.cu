// SPDX-License-Identifier: Apache-2.0
// American puts by explicit finite differences in log-price, one contract per warp. The grid of a contract lives in shared memory; the early-exercise boundary of every time
// step is kept, since the hedging desk needs it.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CUDA_CHECK(call)                                                         \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kContracts = 132 * 32;
constexpr int kNodes = 64;              // two per lane
constexpr int kSteps = 768;
constexpr int kWarps = 4;
constexpr float kHalfWidth = 1.2f;      // log-price range is +-kHalfWidth around the strike
constexpr float kDx = 2.0f * kHalfWidth / (kNodes - 1);

struct Contract {
    float strike;
    float volatility;
    float rate;
    float maturity;
};

// Weights of the explicit scheme.
struct Scheme {
    float down, mid, up;
};

__host__ __device__ inline uint32_t lcg(uint32_t x)
{
    x = x * 1664525u + 1013904223u;
    x ^= x >> 13;
    return x * 0x5bd1e995u;
}
__host__ __device__ inline float fraction(uint32_t x) { return (x >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline Contract contract_of(uint32_t i)
{
    Contract c;
    c.strike = 50.0f + 100.0f * fraction(lcg(i * 4 + 0));
    c.volatility = 0.15f + 0.25f * fraction(lcg(i * 4 + 1));
    c.rate = 0.01f + 0.05f * fraction(lcg(i * 4 + 2));
    c.maturity = 0.5f + 1.0f * fraction(lcg(i * 4 + 3));
    return c;
}

__host__ __device__ inline Scheme scheme_of(const Contract& c)
{
    const float dt = c.maturity / kSteps;
    const float var = c.volatility * c.volatility;
    const float diffusion = 0.5f * var * dt / (kDx * kDx);
    const float drift = 0.5f * (c.rate - 0.5f * var) * dt / kDx;
    Scheme s;
    s.down = diffusion - drift;
    s.up = diffusion + drift;
    s.mid = 1.0f - 2.0f * diffusion - c.rate * dt;
    return s;
}

__host__ __device__ inline float payoff(float strike, int node)
{
    return strike * fmaxf(1.0f - expf(-kHalfWidth + node * kDx), 0.0f);
}

__global__ void make_contracts(Contract* out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kContracts) out[i] = contract_of(i);
}

// Makes the new level of the warp's grid visible to its other lanes.
__device__ inline void publish_level()
{
    __threadfence_block();
    __syncwarp();
}

__global__ void __launch_bounds__(kWarps * 32)
price_puts(const Contract* __restrict__ contracts, float* __restrict__ price,
           int16_t* __restrict__ boundary)
{
    __shared__ float grid[kWarps][2][kNodes + 2];

    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int id = blockIdx.x * kWarps + warp;
    const Contract c = contracts[id];
    const Scheme s = scheme_of(c);

    // Lane holds nodes `lane` and `lane + 32`; slot n + 1 of a level is node n.
    const float exercise0 = payoff(c.strike, lane);
    const float exercise1 = payoff(c.strike, lane + 32);
    volatile float* level = grid[warp][0];
    volatile float* next = grid[warp][1];
    level[lane + 1] = exercise0;
    level[lane + 33] = exercise1;
    if (lane == 0) {
        // Constant values beyond both ends.
        level[0] = next[0] = payoff(c.strike, -1);
        level[kNodes + 1] = next[kNodes + 1] = 0.0f;
    }
    publish_level();

    int16_t* edge = boundary + (size_t)id * kSteps;
    for (int step = 0; step < kSteps; ++step) {
        const float held0 = s.down * level[lane] + s.mid * level[lane + 1] + s.up * level[lane + 2];
        const float held1 =
            s.down * level[lane + 32] + s.mid * level[lane + 33] + s.up * level[lane + 34];
        next[lane + 1] = fmaxf(held0, exercise0);
        next[lane + 33] = fmaxf(held1, exercise1);

        const unsigned below = __ballot_sync(0xffffffffu, exercise0 > held0);
        const unsigned above = __ballot_sync(0xffffffffu, exercise1 > held1);
        if (lane == 0) edge[step] = (int16_t)(__popc(below) + __popc(above));

        publish_level();
        volatile float* t = level;
        level = next;
        next = t;
    }
    if (lane < 2) atomicAdd(&price[id], 0.5f * level[kNodes / 2 + lane]);   // at the money
}

static bool verify(const std::vector<float>& price, const std::vector<int16_t>& boundary)
{
    for (uint32_t n = 0; n < 96; ++n) {
        const uint32_t id = n * 43u % kContracts;
        const Contract c = contract_of(id);
        const Scheme s = scheme_of(c);
        double a[kNodes + 2], b[kNodes + 2], pay[kNodes];
        for (int i = 0; i < kNodes; ++i) a[i + 1] = pay[i] = payoff(c.strike, i);
        a[0] = b[0] = payoff(c.strike, -1);
        a[kNodes + 1] = b[kNodes + 1] = 0.0;
        double *level = a, *next = b;
        for (int step = 0; step < kSteps; ++step) {
            int exercised = 0;
            for (int i = 0; i < kNodes; ++i) {
                const double held = s.down * level[i] + s.mid * level[i + 1] + s.up * level[i + 2];
                exercised += pay[i] > held;
                next[i + 1] = std::fmax(held, pay[i]);
            }
            if (step % 64 == 63 && std::abs(exercised - boundary[(size_t)id * kSteps + step]) > 2) {
                std::fprintf(stderr, "contract %u step %d: boundary %d, expected %d\n", id, step,
                             boundary[(size_t)id * kSteps + step], exercised);
                return false;
            }
            std::swap(level, next);
        }
        const double want = 0.5 * (level[kNodes / 2] + level[kNodes / 2 + 1]);
        if (!(std::fabs(price[id] - want) <= 2e-3 * want + 2e-3)) {
            std::fprintf(stderr, "contract %u: %f, expected %f\n", id, price[id], want);
            return false;
        }
    }
    return true;
}

int main()
{
    Contract* contracts;
    float* price;
    int16_t* boundary;
    CUDA_CHECK(cudaMalloc(&contracts, sizeof(Contract) * kContracts));
    CUDA_CHECK(cudaMalloc(&price, sizeof(float) * kContracts));
    CUDA_CHECK(cudaMalloc(&boundary, sizeof(int16_t) * (size_t)kContracts * kSteps));
    make_contracts<<<(kContracts + 127) / 128, 128>>>(contracts);

    auto revalue = [&] {
        CUDA_CHECK(cudaMemsetAsync(price, 0, sizeof(float) * kContracts));
        price_puts<<<kContracts / kWarps, kWarps * 32>>>(contracts, price, boundary);
    };
    revalue();
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaDeviceSynchronize());

    const int iterations = 60;
    cudaEvent_t start, stop;
    CUDA_CHECK(cudaEventCreate(&start));
    CUDA_CHECK(cudaEventCreate(&stop));
    CUDA_CHECK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it) revalue();
    CUDA_CHECK(cudaEventRecord(stop));
    CUDA_CHECK(cudaEventSynchronize(stop));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> hp(kContracts);
    std::vector<int16_t> hb((size_t)kContracts * kSteps);
    CUDA_CHECK(cudaMemcpy(hp.data(), price, sizeof(float) * kContracts, cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(hb.data(), boundary, sizeof(int16_t) * hb.size(), cudaMemcpyDeviceToHost));
    const bool ok = verify(hp, hb);
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
