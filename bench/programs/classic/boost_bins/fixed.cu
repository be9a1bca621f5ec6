// SPDX-License-Identifier: Apache-2.0
// Gradient-boosted trees: per-feature sums of quantised gradients over the bins of a sparse data set.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(expr)                                                                   \
    do {                                                                                \
        const cudaError_t rc = (expr);                                                  \
        if (rc != cudaSuccess) {                                                        \
            std::fprintf(stderr, "%s failed: %s\n", #expr, cudaGetErrorString(rc));     \
            std::exit(2);                                                               \
        }                                                                               \
    } while (0)

constexpr int kBins = 64;
constexpr int kFeatures = 32;
constexpr int kRows = 1 << 21;
constexpr int kThreads = 512;
constexpr int kSlices = 33;
constexpr int kCopies = 16;

__host__ __device__ inline uint32_t hash32(uint32_t v) {
    v ^= v >> 16;
    v *= 0x7feb352du;
    v ^= v >> 15;
    v *= 0x846ca68bu;
    return v ^ (v >> 16);
}
__host__ __device__ inline uint8_t bin_of(int feature, int row) {
    const uint32_t h = hash32((uint32_t)feature * 0x9e3779b9u + (uint32_t)row);
    return (h & 0xff) < 236 ? 0 : (uint8_t)((h >> 8) % kBins);
}
__host__ __device__ inline int gradient_of(int row) { return (int)(hash32((uint32_t)row ^ 0xabcdef01u) % 255) - 127; }

__global__ void make_data(uint8_t* bins, int* gradient) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= kRows) return;
    if (blockIdx.y == 0) gradient[row] = gradient_of(row);
    bins[(size_t)blockIdx.y * kRows + row] = bin_of(blockIdx.y, row);
}

__global__ void __launch_bounds__(kThreads)
bin_gradients(const uchar4* __restrict__ bins, const int4* __restrict__ gradient, int* __restrict__ sums) {
    __shared__ int local[kBins * kCopies];
    for (int i = threadIdx.x; i < kBins * kCopies; i += kThreads) local[i] = 0;
    __syncthreads();

    const uchar4* column = bins + (size_t)blockIdx.y * (kRows / 4);
    const int mine = threadIdx.x % kCopies;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kRows / 4; i += kSlices * kThreads) {
        const uchar4 b = column[i];
        const int4 g = gradient[i];
        atomicAdd(&local[b.x * kCopies + mine], g.x);
        atomicAdd(&local[b.y * kCopies + mine], g.y);
        atomicAdd(&local[b.z * kCopies + mine], g.z);
        atomicAdd(&local[b.w * kCopies + mine], g.w);
    }
    __syncthreads();

    for (int b = threadIdx.x; b < kBins; b += kThreads) {
        int total = 0;
        for (int c = 0; c < kCopies; ++c) total += local[b * kCopies + c];
        atomicAdd(&sums[blockIdx.y * kBins + b], total);
    }
}

__global__ void best_split(const int* __restrict__ sums, int* __restrict__ split) {
    const int feature = threadIdx.x;
    long long left = 0, best = -1;
    int at = 0;
    for (int b = 0; b < kBins; ++b) {
        left += sums[feature * kBins + b];
        const long long gain = left * left;
        if (gain > best) { best = gain; at = b; }
    }
    split[feature] = at;
}

int main() {
    uint8_t* bins;
    int *gradient, *sums, *split;
    CUDA_OK(cudaMalloc(&bins, (size_t)kRows * kFeatures));
    CUDA_OK(cudaMalloc(&gradient, sizeof(int) * kRows));
    CUDA_OK(cudaMalloc(&sums, sizeof(int) * kFeatures * kBins));
    CUDA_OK(cudaMalloc(&split, sizeof(int) * kFeatures));
    make_data<<<dim3(kRows / 256, kFeatures), 256>>>(bins, gradient);

    auto round = [&] {
        CUDA_OK(cudaMemsetAsync(sums, 0, sizeof(int) * kFeatures * kBins));
        bin_gradients<<<dim3(kSlices, kFeatures), kThreads>>>((const uchar4*)bins, (const int4*)gradient, sums);
    };
    for (int i = 0; i < 10; ++i) round();
    cudaEvent_t a, b;
    CUDA_OK(cudaEventCreate(&a));
    CUDA_OK(cudaEventCreate(&b));
    CUDA_OK(cudaEventRecord(a));
    const int rounds = 200;
    for (int i = 0; i < rounds; ++i) round();
    CUDA_OK(cudaEventRecord(b));
    CUDA_OK(cudaEventSynchronize(b));
    CUDA_OK(cudaGetLastError());
    float ms = 0.f;
    CUDA_OK(cudaEventElapsedTime(&ms, a, b));

    best_split<<<1, kFeatures>>>(sums, split);
    std::vector<int> got(kFeatures * kBins), at(kFeatures);
    CUDA_OK(cudaMemcpy(got.data(), sums, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(at.data(), split, at.size() * sizeof(int), cudaMemcpyDeviceToHost));
    bool good = true;
    for (int f = 0; f < kFeatures; f += 13) {
        std::vector<int> want(kBins, 0);
        for (int r = 0; r < kRows; ++r) want[bin_of(f, r)] += gradient_of(r);
        for (int k = 0; k < kBins; ++k) good = good && want[k] == got[f * kBins + k];
    }
    std::printf("split of feature 0: %d\n", at[0]);
    std::printf("us_per_iteration: %.3f\n", ms * 1e3 / rounds);
    return good ? 0 : 1;
}
