// SPDX-License-Identifier: Apache-2.0
// Light-time geometry for pulsar timing: distance to a body at 8 M epochs from its Chebyshev ephemeris (degree 32 a coordinate, one segment for every 1024
// epochs).  Residuals are wanted to metres over astronomical units.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define RT(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s at %d\n", cudaGetErrorString(e_), __LINE__); exit(2); } } while (0)

constexpr int DEGREE = 32, COEFFS = DEGREE + 1;
constexpr int THREADS = 256, EPOCHS_PER_THREAD = 4, PER_SEGMENT = THREADS * EPOCHS_PER_THREAD;
constexpr int SEGMENTS = 8192;
constexpr size_t EPOCHS = size_t(SEGMENTS) * PER_SEGMENT;

__global__ void __launch_bounds__(THREADS)
body_distance(const double* __restrict__ coeffs, const double* __restrict__ tau, double* __restrict__ distance) {
    __shared__ double c[3][COEFFS];
    for (int i = threadIdx.x; i < 3 * COEFFS; i += THREADS)
        c[i / COEFFS][i % COEFFS] = coeffs[size_t(blockIdx.x) * 3 * COEFFS + i];
    const size_t first = size_t(blockIdx.x) * PER_SEGMENT + threadIdx.x;
    double x[EPOCHS_PER_THREAD], r2[EPOCHS_PER_THREAD];
#pragma unroll
    for (int e = 0; e < EPOCHS_PER_THREAD; ++e) {
        x[e] = tau[first + e * THREADS];
        r2[e] = 0.0;
    }
    __syncthreads();

#pragma unroll 1
    for (int d = 0; d < 3; ++d) {
        // Clenshaw's recurrence, four epochs abreast.
        double b1[EPOCHS_PER_THREAD] = {}, b2[EPOCHS_PER_THREAD] = {};
#pragma unroll
        for (int k = DEGREE; k >= 1; --k) {
            const double ck = c[d][k];
#pragma unroll
            for (int e = 0; e < EPOCHS_PER_THREAD; ++e) {
                const double b = fma(x[e] + x[e], b1[e], ck - b2[e]);
                b2[e] = b1[e];
                b1[e] = b;
            }
        }
#pragma unroll
        for (int e = 0; e < EPOCHS_PER_THREAD; ++e) {
            const double p = fma(x[e], b1[e], c[d][0] - b2[e]);
            r2[e] = fma(p, p, r2[e]);
        }
    }
#pragma unroll
    for (int e = 0; e < EPOCHS_PER_THREAD; ++e) __stcs(distance + first + e * THREADS, sqrt(r2[e]));
}

__host__ __device__ inline double unit(uint32_t i) {
    i = i * 747796405u + 2891336453u;
    i = ((i >> ((i >> 28) + 4)) ^ i) * 277803737u;
    i = (i >> 22) ^ i;
    return double(i) / 4294967296.0;
}
__global__ void make_epochs(double* tau) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < EPOCHS; i += size_t(gridDim.x) * blockDim.x)
        tau[i] = -1.0 + 2.0 * (double(i % PER_SEGMENT) + unit(uint32_t(i))) / PER_SEGMENT;
}

int main() {
    // Coefficients in metres; they fall off with the order as real ones do.
    std::vector<double> hc(size_t(SEGMENTS) * 3 * COEFFS);
    for (int s = 0; s < SEGMENTS; ++s)
        for (int d = 0; d < 3; ++d) {
            double scale = 1.0e11;
            for (int k = 0; k < COEFFS; ++k, scale *= 0.55) {
                const size_t i = (size_t(s) * 3 + d) * COEFFS + k;
                hc[i] = scale * (k == 0 ? 3.0 + unit(uint32_t(i)) : unit(uint32_t(i)) - 0.5);
            }
        }
    double *coeffs, *tau, *distance;
    RT(cudaMalloc(&coeffs, hc.size() * 8));
    RT(cudaMalloc(&tau, EPOCHS * 8));
    RT(cudaMalloc(&distance, EPOCHS * 8));
    RT(cudaMemcpy(coeffs, hc.data(), hc.size() * 8, cudaMemcpyHostToDevice));
    make_epochs<<<2112, 256>>>(tau);

    body_distance<<<SEGMENTS, THREADS>>>(coeffs, tau, distance);
    RT(cudaGetLastError());
    RT(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    RT(cudaEventCreate(&a));
    RT(cudaEventCreate(&b));
    const int loops = 100;
    RT(cudaEventRecord(a));
    for (int i = 0; i < loops; ++i) body_distance<<<SEGMENTS, THREADS>>>(coeffs, tau, distance);
    RT(cudaEventRecord(b));
    RT(cudaEventSynchronize(b));
    float ms = 0;
    RT(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / loops);

    // T_k(x) = cos(k acos x) in extended precision.
    std::vector<double> ht(EPOCHS), got(EPOCHS);
    RT(cudaMemcpy(ht.data(), tau, EPOCHS * 8, cudaMemcpyDeviceToHost));
    RT(cudaMemcpy(got.data(), distance, EPOCHS * 8, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int s = 0; s < 3000; ++s) {
        const size_t i = size_t(s) * 2654435761ull % EPOCHS;
        const long double angle = acosl((long double)ht[i]);
        long double r2 = 0;
        for (int d = 0; d < 3; ++d) {
            long double p = 0;
            for (int k = 0; k < COEFFS; ++k) p += hc[((i / PER_SEGMENT) * 3 + d) * COEFFS + k] * cosl(k * angle);
            r2 += p * p;
        }
        const long double r = sqrtl(r2);
        if (!(fabsl(got[i] - r) <= 1e-11L * r)) ++bad;
    }
    if (bad) printf("bad epochs: %d\n", bad);
    return bad ? 1 : 0;
}
