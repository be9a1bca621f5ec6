// SPDX-License-Identifier: Apache-2.0
// Ranges from the observatory to minor planets, for radar scheduling.  Positions come from polynomial ephemerides; round-trip phases need the range to a few centimetres in 1e9 km,
// so the evaluation is in double precision throughout.
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

constexpr int kBodies = 1056;
constexpr int kTimes = 16384;
constexpr int kOrder = 24;              // coefficients per coordinate
constexpr int kThreads = 256;
constexpr int kPer = 4;                 // times per thread

__host__ __device__ inline double coefficient(uint32_t body, uint32_t axis, uint32_t k)
{
    uint32_t x = (body * 3u + axis) * 64u + k;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    double scale = 1.0e9;               // km; terms fall off by a factor of three
    for (uint32_t i = 0; i < k; ++i) scale *= 1.0 / 3.0;
    return scale * ((double)x * (2.0 / 4294967296.0) - 1.0) + (k == 0 ? 1.5e9 : 0.0);
}
__host__ __device__ inline double time_of(uint32_t i) { return -1.0 + (i + 0.5) * (2.0 / kTimes); }

__global__ void make_inputs(double* coefficients, double* times)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (uint32_t)kBodies * 3u * kOrder)
        coefficients[i] = coefficient(i / (3 * kOrder), i / kOrder % 3, i % kOrder);
    if (i < (uint32_t)kTimes) times[i] = time_of(i);
}

__global__ void __launch_bounds__(kThreads)
range_to_bodies(const double* __restrict__ coefficients, const double* __restrict__ times,
                double* __restrict__ range)
{
    __shared__ __align__(16) double c[3][kOrder];
    const int body = blockIdx.y;
    if (threadIdx.x < 3 * kOrder)
        (&c[0][0])[threadIdx.x] = coefficients[(size_t)body * 3 * kOrder + threadIdx.x];

    const int first = blockIdx.x * (kThreads * kPer) + threadIdx.x;
    double t[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) t[i] = times[first + i * kThreads];
    __syncthreads();

    double square[kPer];
#pragma unroll
    for (int i = 0; i < kPer; ++i) square[i] = 0.0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        double p[kPer];
#pragma unroll
        for (int i = 0; i < kPer; ++i) p[i] = 0.0;
#pragma unroll
        for (int k = kOrder - 2; k >= 0; k -= 2) {
            const double2 pair = *(const double2*)&c[axis][k];
#pragma unroll
            for (int i = 0; i < kPer; ++i) p[i] = fma(fma(p[i], t[i], pair.y), t[i], pair.x);
        }
#pragma unroll
        for (int i = 0; i < kPer; ++i) square[i] = fma(p[i], p[i], square[i]);
    }

    double* dst = range + (size_t)body * kTimes + first;
#pragma unroll
    for (int i = 0; i < kPer; ++i) dst[i * kThreads] = sqrt(square[i]);
}

static bool verify(const std::vector<double>& range)
{
    for (uint32_t n = 0; n < 4096; ++n) {
        const uint32_t body = n * 7919u % kBodies;
        const uint32_t when = n * 104729u % kTimes;
        const long double t = time_of(when);
        long double square = 0.0L;
        for (uint32_t axis = 0; axis < 3; ++axis) {
            long double p = 0.0L, power = 1.0L;
            for (uint32_t k = 0; k < kOrder; ++k) {
                p += (long double)coefficient(body, axis, k) * power;
                power *= t;
            }
            square += p * p;
        }
        const double want = (double)sqrtl(square);
        const double got = range[(size_t)body * kTimes + when];
        if (!(std::fabs(got - want) <= 1e-12 * want + 1e-5)) {
            std::fprintf(stderr, "body %u time %u: %.9f, expected %.9f\n", body, when, got, want);
            return false;
        }
    }
    return true;
}

int main()
{
    double *coefficients, *times, *range;
    const size_t cells = (size_t)kBodies * kTimes;
    CHECK(cudaMalloc(&coefficients, sizeof(double) * kBodies * 3 * kOrder));
    CHECK(cudaMalloc(&times, sizeof(double) * kTimes));
    CHECK(cudaMalloc(&range, sizeof(double) * cells));
    make_inputs<<<(kBodies * 3 * kOrder + 255) / 256, 256>>>(coefficients, times);
    CHECK(cudaGetLastError());

    const dim3 grid(kTimes / (kThreads * kPer), kBodies);
    range_to_bodies<<<grid, kThreads>>>(coefficients, times, range);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    const int iterations = 100;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it)
        range_to_bodies<<<grid, kThreads>>>(coefficients, times, range);
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0.0f;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<double> host(cells);
    CHECK(cudaMemcpy(host.data(), range, sizeof(double) * cells, cudaMemcpyDeviceToHost));
    const bool ok = verify(host);
    CHECK(cudaFree(coefficients));
    CHECK(cudaFree(times));
    CHECK(cudaFree(range));
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
