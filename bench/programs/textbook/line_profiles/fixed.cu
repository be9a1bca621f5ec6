// SPDX-License-Identifier: Apache-2.0
// Voigt profiles of spectral lines from the continued fraction of the complex error function.
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

template <class Launch>
static double time_us(Launch launch, int warm = 20, int reps = 50) {
    for (int i = 0; i < warm; ++i) launch();
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < reps; ++i) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    CUDA_CHECK(cudaEventDestroy(begin));
    CUDA_CHECK(cudaEventDestroy(end));
    return 1e3 * ms / reps;
}

constexpr int kThreads = 128;
constexpr int kPoints = 4;  // wavelengths a thread

// f <- z - (h / f), the inner-to-outer step of the fraction.
__device__ __forceinline__ void step(float& re, float& im, float x, float y, float h) {
    const float s = __fdividef(h, fmaf(re, re, im * im));
    re = fmaf(-s, re, x);
    im = fmaf(s, im, y);
}

// Real part of w(x + iy) for y of order one or larger.
__global__ void __launch_bounds__(kThreads, 2)
voigt_profile(const float* __restrict__ detuning, const float* __restrict__ damping, float* __restrict__ profile,
              int n, int terms) {
    const int base = blockIdx.x * kThreads * kPoints + threadIdx.x;
    float x[kPoints], y[kPoints], re[kPoints], im[kPoints];
#pragma unroll
    for (int p = 0; p < kPoints; ++p) {
        const int i = min(base + p * kThreads, n - 1);
        re[p] = x[p] = detuning[i];
        im[p] = y[p] = damping[i];
    }

    for (int k = terms; k > 0; --k) {
        const float h = 0.5f * (float)k;
#pragma unroll
        for (int p = 0; p < kPoints; ++p) {
            step(re[p], im[p], x[p], y[p], h);
        }
    }

#pragma unroll
    for (int p = 0; p < kPoints; ++p) {
        const int i = base + p * kThreads;
        if (i < n) profile[i] = 0.56418958f * im[p] / fmaf(re[p], re[p], im[p] * im[p]);
    }
}

int main() {
    int sms = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int n = sms * 2 * kThreads * kPoints, terms = 512;
    std::vector<float> detuning(n), damping(n), profile(n);
    for (int i = 0; i < n; ++i) {
        detuning[i] = 8.f * (float)((i * 7919ll) % n) / (float)n - 4.f;
        damping[i] = 0.8f + 0.4f * (float)(i % 13) / 13.f;
    }
    float *d_x, *d_y, *d_out;
    CUDA_CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_y, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_x, detuning.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_y, damping.data(), n * sizeof(float), cudaMemcpyHostToDevice));

    const int blocks = (n + kThreads * kPoints - 1) / (kThreads * kPoints);
    const double us = time_us([&] { voigt_profile<<<blocks, kThreads>>>(d_x, d_y, d_out, n, terms); });

    CUDA_CHECK(cudaMemcpy(profile.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 0; i < n; i += 101) {
        const std::complex<double> z(detuning[i], damping[i]);
        std::complex<double> f = z;
        for (int k = terms; k > 0; --k) f = z - 0.5 * k / f;
        const double want = 0.5641895835477563 * f.imag() / std::norm(f);
        if (!(std::fabs(want - profile[i]) < 1e-3 * std::fabs(want) + 1e-5)) ok = false;
    }
    double checksum = 0.0;
    for (float v : profile) checksum += v;
    std::printf("checksum: %.6f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
