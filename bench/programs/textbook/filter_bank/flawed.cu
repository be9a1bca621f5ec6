// SPDX-License-Identifier: Apache-2.0
// Bank of second-order IIR sections applied to many receiver channels at once.
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

struct Biquad {
    float b0, b1, b2, a1, a2;
};

// Position of sample t of channel ch in the recording.
__host__ __device__ __forceinline__ size_t slot(int ch, int t, int channels, int samples) {
    return (size_t)ch * samples + t;
}

// Direct form II transposed, one channel per thread.
__global__ void __launch_bounds__(128)
filter_channels(const float* __restrict__ in, float* __restrict__ out,
                const Biquad* __restrict__ sections, int n_sections, int channels, int samples) {
    const int ch = blockIdx.x * blockDim.x + threadIdx.x;
    if (ch >= channels) return;
    const Biquad q = sections[(ch >> 5) % n_sections];
    float z1 = 0.f, z2 = 0.f;
#pragma unroll 8
    for (int t = 0; t < samples; ++t) {
        const float x = in[slot(ch, t, channels, samples)];
        const float y = fmaf(q.b0, x, z1);
        z1 = fmaf(q.b1, x, fmaf(-q.a1, y, z2));
        z2 = fmaf(q.b2, x, -q.a2 * y);
        out[slot(ch, t, channels, samples)] = y;
    }
}

__host__ __device__ inline float sample_of(int ch, int t) {
    uint32_t h = (uint32_t)ch * 2654435761u ^ (uint32_t)t * 40503u;
    h ^= h >> 15;
    h *= 2246822519u;
    return (float)(h >> 8) * (2.f / 16777216.f) - 1.f;
}

__global__ void make_recording(float* __restrict__ in, int channels, int samples) {
    const int ch = blockIdx.x * blockDim.x + threadIdx.x;
    if (ch >= channels) return;
    for (int t = blockIdx.y; t < samples; t += gridDim.y) in[slot(ch, t, channels, samples)] = sample_of(ch, t);
}

int main() {
    const int channels = 131072, samples = 256, n_sections = 16;
    const size_t n = (size_t)channels * samples;

    std::vector<Biquad> sections(n_sections);
    for (int s = 0; s < n_sections; ++s) {
        const float w = 0.1f + 0.12f * s, alpha = sinf(w) / 1.6f, a0 = 1.f + alpha;
        sections[s] = {(1.f - cosf(w)) * 0.5f / a0, (1.f - cosf(w)) / a0, (1.f - cosf(w)) * 0.5f / a0,
                       -2.f * cosf(w) / a0, (1.f - alpha) / a0};
    }
    float *in, *out;
    Biquad* d_sections;
    CUDA_CHECK(cudaMalloc(&in, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&out, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_sections, n_sections * sizeof(Biquad)));
    make_recording<<<dim3((channels + 127) / 128, 8), 128>>>(in, channels, samples);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(d_sections, sections.data(), n_sections * sizeof(Biquad), cudaMemcpyHostToDevice));

    const double us = time_us([&] {
        filter_channels<<<(channels + 127) / 128, 128>>>(in, out, d_sections, n_sections, channels, samples);
    });

    std::vector<float> host(n);
    CUDA_CHECK(cudaMemcpy(host.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
    double checksum = 0.0;
    bool ok = true;
    for (int ch = 5; ch < channels; ch += 997) {
        const Biquad q = sections[(ch >> 5) % n_sections];
        double z1 = 0.0, z2 = 0.0;
        for (int t = 0; t < samples; ++t) {
            const double x = sample_of(ch, t), y = q.b0 * x + z1;
            z1 = q.b1 * x - q.a1 * y + z2;
            z2 = q.b2 * x - q.a2 * y;
            const float got = host[slot(ch, t, channels, samples)];
            if (!(std::fabs(got - y) < 2e-3)) ok = false;
            checksum += std::fabs(got);
        }
    }
    std::printf("checksum: %.6f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
