// SPDX-License-Identifier: Apache-2.0
// Mass spectrometry: coarse, normalised profiles of many spectra of very different numbers of peaks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define REQUIRE(call)                                                        \
    do {                                                                     \
        cudaError_t r = (call);                                              \
        if (r != cudaSuccess) {                                              \
            printf("%d: %s\n", __LINE__, cudaGetErrorString(r));             \
            exit(2);                                                         \
        }                                                                    \
    } while (0)

constexpr int kProfile = 64;
constexpr int kWarps = 32;

// A peak packs the mass (upper half) and the intensity (lower half).
__host__ __device__ inline uint32_t peak_at(uint32_t i) {
    uint32_t h = i * 0x9E3779B9u;
    h ^= h >> 16;
    h *= 0x21f0aaadu;
    h ^= h >> 15;
    h *= 0x735a2d97u;
    h ^= h >> 15;
    return (h & 0xffff0000u) | (h & 0x3ffu);
}

__global__ void record_peaks(uint32_t* peaks, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) peaks[i] = peak_at(i);
}

__global__ void __launch_bounds__(kWarps * 32, 2)
profile_spectra(const uint32_t* __restrict__ peaks, const uint32_t* __restrict__ offset, float2* __restrict__ profiles,
                int spectra) {
    __shared__ uint32_t bins[kWarps][kProfile];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint32_t* own = bins[warp];
    for (int first = blockIdx.x * kWarps; first < spectra; first += gridDim.x * kWarps) {
        const int s = first + warp;
        own[lane] = 0;
        own[lane + 32] = 0;
        __syncthreads();
        const uint32_t end = offset[s + 1];
        for (uint32_t i = offset[s] + lane; i < end; i += 32) {
            const uint32_t peak = peaks[i];
            atomicAdd(&own[peak >> 26], peak & 0xffffu);
        }
        __syncthreads();
        const uint32_t a = own[2 * lane], b = own[2 * lane + 1];
        const uint32_t top = __reduce_max_sync(0xffffffffu, max(a, b));
        const float scale = 1.f / (float)max(top, 1u);
        profiles[(size_t)s * 32 + lane] = make_float2(a * scale, b * scale);
        __syncthreads();
    }
}

int main() {
    const int spectra = 262144;
    std::vector<uint32_t> offset(spectra + 1, 0);
    uint64_t seed = 42;
    for (int s = 0; s < spectra; ++s) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        const double u = ((seed >> 33) + 1.0) / 2147483649.0;
        offset[s + 1] = offset[s] + 32 + (uint32_t)std::min(4000.0, -220.0 * std::log(u));
    }
    const uint32_t total = offset[spectra];
    uint32_t *d_peaks, *d_offset;
    float2* d_profiles;
    REQUIRE(cudaMalloc(&d_peaks, (size_t)total * 4));
    REQUIRE(cudaMalloc(&d_offset, offset.size() * 4));
    REQUIRE(cudaMalloc(&d_profiles, (size_t)spectra * kProfile * 4));
    REQUIRE(cudaMemcpy(d_offset, offset.data(), offset.size() * 4, cudaMemcpyHostToDevice));
    record_peaks<<<(total + 255) / 256, 256>>>(d_peaks, total);

    int sms;
    REQUIRE(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    cudaEvent_t e0, e1;
    REQUIRE(cudaEventCreate(&e0));
    REQUIRE(cudaEventCreate(&e1));
    for (int i = 0; i < 5; ++i) profile_spectra<<<2 * sms, kWarps * 32>>>(d_peaks, d_offset, d_profiles, spectra);
    REQUIRE(cudaEventRecord(e0));
    const int rounds = 100;
    for (int i = 0; i < rounds; ++i) profile_spectra<<<2 * sms, kWarps * 32>>>(d_peaks, d_offset, d_profiles, spectra);
    REQUIRE(cudaEventRecord(e1));
    REQUIRE(cudaEventSynchronize(e1));
    REQUIRE(cudaGetLastError());
    float ms = 0;
    REQUIRE(cudaEventElapsedTime(&ms, e0, e1));

    std::vector<float> profiles((size_t)spectra * kProfile);
    REQUIRE(cudaMemcpy(profiles.data(), d_profiles, profiles.size() * 4, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int s = 9; s < spectra; s += 503) {
        uint32_t want[kProfile] = {}, top = 1;
        for (uint32_t i = offset[s]; i < offset[s + 1]; ++i) want[peak_at(i) >> 26] += peak_at(i) & 0xffffu;
        for (uint32_t v : want) top = std::max(top, v);
        for (int b = 0; b < kProfile; ++b)
            if (!(std::fabs(profiles[(size_t)s * kProfile + b] - (float)want[b] / top) < 1e-5f)) ++wrong;
    }
    printf("peaks: %u, wrong bins: %d\n", total, wrong);
    printf("us_per_iteration: %.3f\n", ms * 1000.0 / rounds);
    return wrong ? 1 : 0;
}
