// SPDX-License-Identifier: Apache-2.0
// Prices a book of path-dependent options; every underlying carries one contract of each model.
#include <cmath>
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

constexpr int kModels = 4;
constexpr int kSteps = 64;
constexpr int kPaths = 8;

struct Underlying {
    float spot, strike, vol, drift;
};

__host__ __device__ inline uint32_t next(uint32_t& s) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    return s;
}

// Unit-variance shock: sum of two 16-bit uniforms (triangular law).
__host__ __device__ inline float shock(uint32_t& s) {
    const uint32_t r = next(s);
    return (float)((int)(r & 0xffffu) + (int)(r >> 16) - 65535) * (2.4494897f / 65536.f);
}

__host__ __device__ inline float asian(const Underlying& u, uint32_t s) {
    float spot = u.spot, sum = 0.f;
    for (int t = 0; t < kSteps; ++t) {
        spot = fmaf(spot, fmaf(u.vol * 0.125f, shock(s), u.drift * 0.015625f), spot);
        sum += spot;
    }
    return fmaxf(sum * (1.f / kSteps) - u.strike, 0.f);
}

__host__ __device__ inline float lookback(const Underlying& u, uint32_t s) {
    float spot = u.spot, low = u.spot, high = u.spot;
    for (int t = 0; t < kSteps; ++t) {
        const float skew = fmaf(0.3f, (u.spot - spot) * (1.f / 128.f), 1.f);
        spot = fmaf(spot, fmaf(u.vol * 0.125f * skew, shock(s), u.drift * 0.015625f), spot);
        low = fminf(low, spot);
        high = fmaxf(high, spot);
    }
    return fmaxf(high - low - 0.1f * u.strike, 0.f);
}

__host__ __device__ inline float stochastic_vol(const Underlying& u, uint32_t s) {
    float spot = u.spot, var = u.vol;
    for (int t = 0; t < kSteps; ++t) {
        const float z1 = shock(s), z2 = fmaf(-0.6f, z1, 0.8f * shock(s));
        spot = fmaf(spot, fmaf(var * 0.125f, z1, u.drift * 0.015625f), spot);
        var = fmaxf(fmaf(0.05f, u.vol - var, fmaf(0.03f * var, z2, var)), 0.01f);
    }
    return fmaxf(spot - u.strike, 0.f);
}

__host__ __device__ inline float jump_diffusion(const Underlying& u, uint32_t s) {
    float spot = u.spot, jumps = 0.f;
    for (int t = 0; t < kSteps; ++t) {
        const float z = shock(s);
        const uint32_t r = next(s);
        const float jump = (r & 0x1fu) == 0u ? -0.04f - (float)(r >> 12) * (0.04f / 1048576.f) : 0.f;
        spot = fmaf(spot, fmaf(u.vol * 0.125f, z, u.drift * 0.015625f + jump), spot);
        jumps = fmaf(0.9f, jumps, jump);
    }
    return fmaxf(u.strike - spot * (1.f + 0.1f * jumps), 0.f);
}

__global__ void __launch_bounds__(256)
price_contracts(const Underlying* __restrict__ book, float* __restrict__ price, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n * kModels) return;
    const int asset = i / kModels;
    const int model = i % kModels;
    const Underlying u = book[asset];
    float total = 0.f;
    for (int p = 0; p < kPaths; ++p) {
        const uint32_t seed = 0x9e3779b9u * (uint32_t)(asset * kPaths + p + 1) | 1u;
        switch (model) {
            case 0: total += asian(u, seed); break;
            case 1: total += lookback(u, seed); break;
            case 2: total += stochastic_vol(u, seed); break;
            default: total += jump_diffusion(u, seed); break;
        }
    }
    price[(size_t)model * n + asset] = total * (1.f / kPaths);
}

int main() {
    const int n = 65536;
    std::vector<Underlying> book(n);
    for (int i = 0; i < n; ++i) {
        const float spot = 80.f + (float)(i % 41);
        book[i] = {spot, spot * (0.9f + 0.01f * (i % 17)), 0.15f + 0.01f * (i % 23), 0.02f + 0.001f * (i % 11)};
    }
    Underlying* d_book;
    float* d_price;
    CUDA_CHECK(cudaMalloc(&d_book, n * sizeof(Underlying)));
    CUDA_CHECK(cudaMalloc(&d_price, (size_t)n * kModels * sizeof(float)));
    CUDA_CHECK(cudaMemcpy(d_book, book.data(), n * sizeof(Underlying), cudaMemcpyHostToDevice));

    const int threads = 256, blocks = (n * kModels + threads - 1) / threads;
    const double us = time_us([&] { price_contracts<<<blocks, threads>>>(d_book, d_price, n); });

    std::vector<float> price((size_t)n * kModels);
    CUDA_CHECK(cudaMemcpy(price.data(), d_price, price.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int a = 7; a < n; a += 509)
        for (int m = 0; m < kModels; ++m) {
            double total = 0.0;
            for (int p = 0; p < kPaths; ++p) {
                const uint32_t seed = 0x9e3779b9u * (uint32_t)(a * kPaths + p + 1) | 1u;
                total += m == 0 ? asian(book[a], seed) : m == 1 ? lookback(book[a], seed)
                       : m == 2 ? stochastic_vol(book[a], seed) : jump_diffusion(book[a], seed);
            }
            if (!(std::fabs(total / kPaths - price[(size_t)m * n + a]) < 0.02)) ok = false;
        }
    double checksum = 0.0;
    for (float p : price) checksum += p;
    std::printf("checksum: %.3f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
