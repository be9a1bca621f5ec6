// SPDX-License-Identifier: Apache-2.0
// Group-by aggregation: number of orders and revenue per sales region.
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

constexpr int kRegions = 64;

struct Totals {
    unsigned long long cents[kRegions];
    unsigned int orders[kRegions];
};

__global__ void __launch_bounds__(256)
aggregate_orders(const uint32_t* __restrict__ region4, const uint4* __restrict__ cents4, int n4, Totals* totals) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first; i < n4; i += gridDim.x * blockDim.x) {
        const uint32_t packed = region4[i];
        const uint4 c = cents4[i];
        const uint32_t cents[4] = {c.x, c.y, c.z, c.w};
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const uint32_t region = (packed >> (8 * k)) & (kRegions - 1);
            atomicAdd(&totals->cents[region], (unsigned long long)cents[k]);
            atomicAdd(&totals->orders[region], 1u);
        }
    }
}

int main() {
    const int n = 1 << 24;
    std::vector<uint8_t> region(n);
    std::vector<uint32_t> cents(n);
    uint32_t s = 99u;
    for (int i = 0; i < n; ++i) {
        s = s * 1664525u + 1013904223u;
        const uint32_t u = s >> 16;
        // A few regions take most of the orders.
        region[i] = (uint8_t)((u & 7u) < 3u ? (u >> 3) % 5u : (u >> 3) % kRegions);
        cents[i] = 100u + (u * 37u) % 4000u;
    }
    uint32_t* d_region;
    uint4* d_cents;
    Totals* d_totals;
    CUDA_CHECK(cudaMalloc(&d_region, n));
    CUDA_CHECK(cudaMalloc(&d_cents, (size_t)n * sizeof(uint32_t)));
    CUDA_CHECK(cudaMalloc(&d_totals, sizeof(Totals)));
    CUDA_CHECK(cudaMemcpy(d_region, region.data(), n, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_cents, cents.data(), (size_t)n * sizeof(uint32_t), cudaMemcpyHostToDevice));

    int sms = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const double us = time_us([&] {
        cudaMemsetAsync(d_totals, 0, sizeof(Totals));
        aggregate_orders<<<sms * 8, 256>>>(d_region, d_cents, n / 4, d_totals);
    });

    Totals got, want = {};
    CUDA_CHECK(cudaMemcpy(&got, d_totals, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) {
        want.cents[region[i]] += cents[i];
        want.orders[region[i]] += 1;
    }
    bool ok = true;
    unsigned long long checksum = 0;
    for (int r = 0; r < kRegions; ++r) {
        ok = ok && got.cents[r] == want.cents[r] && got.orders[r] == want.orders[r];
        checksum += got.cents[r] * (r + 1) + got.orders[r];
    }
    std::printf("checksum: %llu\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
