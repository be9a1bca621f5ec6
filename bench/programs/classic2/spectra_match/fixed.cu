// SPDX-License-Identifier: Apache-2.0
// Library search for mass spectra: Manhattan distance between every query spectrum and every library spectrum.  Spectra are binned intensities, normalised to a common base peak.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kQueries = 2048;
constexpr int kLibrary = 4096;
constexpr int kBins = 128;

constexpr int kSide = 16;            // threads along each side of a block
constexpr int kPer = 4;              // spectra of each kind per thread
constexpr int kTile = kSide * kPer;  // spectra of each kind per block
constexpr int kDepth = 32;           // bins staged at a time

__host__ __device__ inline uint32_t scramble(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

__host__ __device__ inline float intensity(uint32_t spectrum, uint32_t bin, uint32_t set)
{
    const uint32_t r = scramble(spectrum * 131u + bin * 7919u + set * 104729u);
    const float base = (r & 0xffffu) * (1.0f / 65536.0f);
    return (r >> 29) == 0 ? base : 0.125f * base;   // few strong peaks, much background
}

__global__ void make_spectra(float* out, int count, uint32_t set)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count * kBins) out[i] = intensity(i / kBins, i % kBins, set);
}

// Copies kTile spectra by kDepth bins to shared memory, bins outermost.
__device__ inline void stage(float (*dst)[kTile + 1], const float* __restrict__ src,
                             int first, int bin0)
{
    const int t = threadIdx.y * kSide + threadIdx.x;
    const int bin = t % kDepth;
#pragma unroll
    for (int row = t / kDepth; row < kTile; row += kSide * kSide / kDepth)
        dst[bin][row] = src[(size_t)(first + row) * kBins + bin0 + bin];
}

__global__ void __launch_bounds__(kSide * kSide)
match_spectra(const float* __restrict__ queries, const float* __restrict__ library,
              float* __restrict__ distance)
{
    __shared__ float qs[kDepth][kTile + 1];
    __shared__ float ls[kDepth][kTile + 1];

    const int q0 = blockIdx.y * kTile;
    const int l0 = blockIdx.x * kTile;

    float sum[kPer][kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i)
#pragma unroll
        for (int j = 0; j < kPer; ++j) sum[i][j] = 0.0f;

    for (int bin0 = 0; bin0 < kBins; bin0 += kDepth) {
        stage(qs, queries, q0, bin0);
        stage(ls, library, l0, bin0);
        __syncthreads();

#pragma unroll
        for (int b = 0; b < kDepth; ++b) {
            float q[kPer], l[kPer];
#pragma unroll
            for (int i = 0; i < kPer; ++i) {
                q[i] = qs[b][threadIdx.y + i * kSide];
                l[i] = ls[b][threadIdx.x + i * kSide];
            }
#pragma unroll
            for (int i = 0; i < kPer; ++i)
#pragma unroll
                for (int j = 0; j < kPer; ++j) sum[i][j] += fabsf(q[i] - l[j]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < kPer; ++i)
#pragma unroll
        for (int j = 0; j < kPer; ++j)
            distance[(size_t)(q0 + threadIdx.y + i * kSide) * kLibrary + l0 + threadIdx.x +
                     j * kSide] = sum[i][j];
}

static bool verify(const std::vector<float>& distance)
{
    for (uint32_t s = 0; s < 4096; ++s) {
        const uint32_t q = scramble(s * 2 + 1) % kQueries;
        const uint32_t l = scramble(s * 2 + 2) % kLibrary;
        double want = 0.0;
        for (uint32_t b = 0; b < kBins; ++b)
            want += std::fabs((double)intensity(q, b, 1) - (double)intensity(l, b, 2));
        const double got = distance[(size_t)q * kLibrary + l];
        if (!(std::fabs(got - want) <= 1e-3 * want + 1e-4)) {
            std::fprintf(stderr, "query %u library %u: %f, expected %f\n", q, l, got, want);
            return false;
        }
    }
    return true;
}

int main()
{
    float *queries, *library, *distance;
    CHECK(cudaMalloc(&queries, sizeof(float) * kQueries * kBins));
    CHECK(cudaMalloc(&library, sizeof(float) * kLibrary * kBins));
    CHECK(cudaMalloc(&distance, sizeof(float) * kQueries * kLibrary));
    make_spectra<<<(kQueries * kBins + 255) / 256, 256>>>(queries, kQueries, 1);
    make_spectra<<<(kLibrary * kBins + 255) / 256, 256>>>(library, kLibrary, 2);
    CHECK(cudaGetLastError());

    const dim3 block(kSide, kSide);
    const dim3 grid(kLibrary / kTile, kQueries / kTile);
    match_spectra<<<grid, block>>>(queries, library, distance);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    const int iterations = 100;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it)
        match_spectra<<<grid, block>>>(queries, library, distance);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0.0f;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> host((size_t)kQueries * kLibrary);
    CHECK(cudaMemcpy(host.data(), distance, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
    const bool ok = verify(host);
    CHECK(cudaFree(queries));
    CHECK(cudaFree(library));
    CHECK(cudaFree(distance));
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
