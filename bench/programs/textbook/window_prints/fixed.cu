// SPDX-License-Identifier: Apache-2.0
// Karp-Rabin fingerprints of every 48-byte window of a text (near-duplicate detection).
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

constexpr int kWindow = 48;
constexpr int kThreads = 256;

struct Field {
    uint64_t prime;    // below 2^31
    uint64_t inverse;  // floor((2^64 - 1) / prime)
    uint32_t base;
};

__global__ void __launch_bounds__(kThreads)
fingerprint_windows(const uint8_t* __restrict__ text, uint32_t* __restrict__ print, int n, Field f) {
    __shared__ uint8_t piece[kThreads + kWindow];
    const int first = blockIdx.x * kThreads;
    for (int i = threadIdx.x; i < kThreads + kWindow; i += kThreads) piece[i] = first + i < n ? text[first + i] : 0;
    __syncthreads();
    if (first + (int)threadIdx.x + kWindow > n) return;
    uint32_t h = 0;
#pragma unroll 4
    for (int k = 0; k < kWindow; ++k) {
        const uint64_t v = (uint64_t)h * f.base + piece[threadIdx.x + k];
        const uint64_t r = v - __umul64hi(v, f.inverse) * f.prime;
        h = (uint32_t)(r >= f.prime ? r - f.prime : r);
    }
    print[first + threadIdx.x] = h;
}

int main() {
    const int n = 1 << 22;
    std::vector<uint8_t> text(n);
    uint32_t s = 5u;
    for (auto& c : text) {
        s = s * 1664525u + 1013904223u;
        c = (uint8_t)("etaoin shrdlucmf"[s >> 28]);
    }
    const uint64_t prime = 2147483629ull;
    const Field field = {prime, ~0ull / prime, 1000003u};

    uint8_t* d_text;
    uint32_t* d_print;
    CUDA_CHECK(cudaMalloc(&d_text, n));
    CUDA_CHECK(cudaMalloc(&d_print, (size_t)n * sizeof(uint32_t)));
    CUDA_CHECK(cudaMemset(d_print, 0, (size_t)n * sizeof(uint32_t)));
    CUDA_CHECK(cudaMemcpy(d_text, text.data(), n, cudaMemcpyHostToDevice));

    const double us = time_us([&] {
        fingerprint_windows<<<(n + kThreads - 1) / kThreads, kThreads>>>(d_text, d_print, n, field);
    });

    std::vector<uint32_t> print(n);
    CUDA_CHECK(cudaMemcpy(print.data(), d_print, (size_t)n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 0; i + kWindow <= n; i += 97) {
        uint64_t h = 0;
        for (int k = 0; k < kWindow; ++k) h = (h * field.base + text[i + k]) % prime;
        if (print[i] != h) ok = false;
    }
    uint64_t checksum = 0;
    for (uint32_t p : print) checksum += p;
    std::printf("checksum: %llu\n", (unsigned long long)checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
