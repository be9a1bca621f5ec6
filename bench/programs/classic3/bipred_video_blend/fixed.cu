// SPDX-License-Identifier: Apache-2.0. Weighted bi-directional prediction of 10-bit luma: two motion-compensated
// references are blended with explicit weights and clipped to the sample range.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int WIDTH = 3840;
constexpr int HEIGHT = 2160;
constexpr int FRAMES = 8;
constexpr int MAX_SAMPLE = 1023;

struct BlendWeights {
    int w0, w1;       // weights of the two lists
    int round;        // rounding term before the shift, offset included
    int shift;
};

__host__ __device__ inline uint16_t sample_at(uint32_t list, uint32_t i) {
    uint32_t x = i * 2654435761u + list * 0x9e3779b9u;
    x ^= x >> 15; x *= 0x2c1b3c6du;
    x ^= x >> 12; x *= 0x297a2d39u;
    x ^= x >> 15;
    return (uint16_t)(x & MAX_SAMPLE);
}

__host__ __device__ inline uint16_t blend_sample(int a, int b, const BlendWeights& w) {
    const int v = (w.w0 * a + w.w1 * b + w.round) >> w.shift;
    return (uint16_t)(v < 0 ? 0 : v > MAX_SAMPLE ? MAX_SAMPLE : v);
}

__global__ void fill_reference(uint16_t* ref, uint32_t n, uint32_t list) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) ref[i] = sample_at(list, i);
}

struct alignas(16) Octet { uint16_t s[8]; };

__global__ void __launch_bounds__(256)
blend_bipred(const Octet* __restrict__ ref0, const Octet* __restrict__ ref1,
             Octet* __restrict__ out, uint32_t n, BlendWeights w) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Octet a = ref0[i], b = ref1[i];
    Octet r;
#pragma unroll
    for (int k = 0; k < 8; ++k) r.s[k] = blend_sample(a.s[k], b.s[k], w);
    out[i] = r;
}

int main() {
    const uint32_t n = (uint32_t)WIDTH * HEIGHT * FRAMES;
    const BlendWeights weights = {41, 27, 32 + (3 << 6), 6};
    uint16_t *ref0, *ref1, *out;
    CK(cudaMalloc(&ref0, (size_t)n * 2));
    CK(cudaMalloc(&ref1, (size_t)n * 2));
    CK(cudaMalloc(&out, (size_t)n * 2));
    fill_reference<<<(n + 255) / 256, 256>>>(ref0, n, 1u);
    fill_reference<<<(n + 255) / 256, 256>>>(ref1, n, 2u);
    CK(cudaMemset(out, 0xff, (size_t)n * 2));

    const int iters = 40;
    const uint32_t threads = 256;
    const uint32_t work = n / 8;
    const uint32_t grid = (work + threads - 1) / threads;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        blend_bipred<<<grid, threads>>>((const Octet*)ref0, (const Octet*)ref1, (Octet*)out, work, weights);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);
    printf("frames per second: %.0f\n", FRAMES * iters / (ms * 1e-3f));

    std::vector<uint16_t> got(n);
    CK(cudaMemcpy(got.data(), out, (size_t)n * 2, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < n; i += 37) {
        const uint16_t want = blend_sample(sample_at(1u, i), sample_at(2u, i), weights);
        if (got[i] != want) {
            printf("sample %u: %u instead of %u\n", i, got[i], want);
            return 1;
        }
    }
    if (got[n - 1] != blend_sample(sample_at(1u, n - 1), sample_at(2u, n - 1), weights)) {
        printf("last sample differs\n");
        return 1;
    }
    cudaFree(ref0);
    cudaFree(ref1);
    cudaFree(out);
    return 0;
}
