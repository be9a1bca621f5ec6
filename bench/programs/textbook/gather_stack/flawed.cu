// SPDX-License-Identifier: Apache-2.0
// Normal-moveout correction and stack of seismic common-midpoint gathers.
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

struct TraceGeom {
    float offset2_over_v2;  // (offset / velocity)^2 in samples^2
    float weight;
    float static_shift;     // samples
    float unused;
};

constexpr int kThreads = 128;
constexpr int kMaxFold = 8192;  // largest fold of any survey we process

// One block per gather; section[g][t] = sum over traces of the moved-out amplitude.
__global__ void __launch_bounds__(kThreads)
stack_gathers(const float* __restrict__ traces, const TraceGeom* __restrict__ geometry, float* __restrict__ section,
              int fold, int samples) {
    extern __shared__ TraceGeom geom[];
    const float* gather = traces + (size_t)blockIdx.x * fold * samples;
#pragma unroll 1
    for (int k = threadIdx.x; k < fold; k += kThreads) geom[k] = geometry[(size_t)blockIdx.x * fold + k];
    __syncthreads();

    for (int t = threadIdx.x; t < samples; t += kThreads) {
        const float t2 = (float)t * (float)t;
        float sum = 0.f;
#pragma unroll 4
        for (int k = 0; k < fold; ++k) {
            const TraceGeom g = geom[k];
            const float r2 = t2 + g.offset2_over_v2;
            const float pos = fminf(fmaf(r2, rsqrtf(r2), g.static_shift), (float)(samples - 2));
            const int base = (int)pos;
            const float frac = pos - (float)base;
            const float* trace = gather + (size_t)k * samples;
            const float a = __ldg(trace + base), b = __ldg(trace + base + 1);
            sum = fmaf(g.weight, fmaf(frac, b - a, a), sum);
        }
        section[(size_t)blockIdx.x * samples + t] = sum;
    }
}

__global__ void make_traces(float* traces, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        uint32_t h = (uint32_t)i * 2654435761u;
        h ^= h >> 16;
        h *= 2246822519u;
        traces[i] = (float)(h >> 8) * (2.f / 16777216.f) - 1.f;
    }
}

int main() {
    const int gathers = 8448, fold = 16, samples = 1024;
    const size_t n = (size_t)gathers * fold * samples;
    std::vector<TraceGeom> geometry((size_t)gathers * fold);
    for (int g = 0; g < gathers; ++g)
        for (int k = 0; k < fold; ++k) {
            const float r = 2.5f * (float)(k + 1) + 0.01f * (float)(g % 100);
            geometry[(size_t)g * fold + k] = {r * r, 1.f / fold, 0.25f * (float)(k % 5), 0.f};
        }
    float *traces, *section;
    TraceGeom* d_geometry;
    CUDA_CHECK(cudaMalloc(&traces, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&section, (size_t)gathers * samples * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_geometry, geometry.size() * sizeof(TraceGeom)));
    CUDA_CHECK(cudaMemcpy(d_geometry, geometry.data(), geometry.size() * sizeof(TraceGeom), cudaMemcpyHostToDevice));
    make_traces<<<1056, 256>>>(traces, n);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaFuncSetAttribute(stack_gathers, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)(kMaxFold * sizeof(TraceGeom))));

    const double us = time_us([&] {
        stack_gathers<<<gathers, kThreads, kMaxFold * sizeof(TraceGeom)>>>(traces, d_geometry, section, fold, samples);
    });

    std::vector<float> got((size_t)gathers * samples), gather((size_t)fold * samples);
    CUDA_CHECK(cudaMemcpy(got.data(), section, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int g = 1; g < gathers; g += 907) {
        CUDA_CHECK(cudaMemcpy(gather.data(), traces + (size_t)g * fold * samples, gather.size() * sizeof(float),
                              cudaMemcpyDeviceToHost));
        int bad = 0;
        for (int t = 0; t < samples; ++t) {
            double sum = 0.0;
            for (int k = 0; k < fold; ++k) {
                const TraceGeom& q = geometry[(size_t)g * fold + k];
                const float pos = std::fmin(std::sqrt((float)t * (float)t + q.offset2_over_v2) + q.static_shift,
                                            (float)(samples - 2));
                const int base = (int)pos;
                const double a = gather[(size_t)k * samples + base], b = gather[(size_t)k * samples + base + 1];
                sum += q.weight * (a + (pos - base) * (b - a));
            }
            if (!(std::fabs(sum - got[(size_t)g * samples + t]) < 1e-3)) ++bad;
        }
        if (bad) ok = false;
    }
    double checksum = 0.0;
    for (float v : got) checksum += std::fabs(v);
    std::printf("checksum: %.4f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
