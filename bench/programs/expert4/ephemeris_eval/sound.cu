// SPDX-License-Identifier: Apache-2.0
// Evaluates piecewise polynomial ephemerides: x, y and z of a body at many epochs of every segment.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(call)                                                              \
    do {                                                                           \
        cudaError_t err_ = (call);                                                 \
        if (err_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(2);                                                          \
        }                                                                          \
    } while (0)

[[maybe_unused]] static inline uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
[[maybe_unused]] static inline float unit(uint32_t x) { return (hash32(x) >> 8) * (1.0f / 16777216.0f); }

template <class Step>
static float time_steps(int warm, int iters, Step step)
{
    for (int i = 0; i < warm; ++i) step();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    CUDA_OK(cudaEventCreate(&a));
    CUDA_OK(cudaEventCreate(&b));
    CUDA_OK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CUDA_OK(cudaEventRecord(b));
    CUDA_OK(cudaEventSynchronize(b));
    CUDA_OK(cudaGetLastError());
    float ms = 0.f;
    CUDA_OK(cudaEventElapsedTime(&ms, a, b));
    CUDA_OK(cudaEventDestroy(a));
    CUDA_OK(cudaEventDestroy(b));
    return ms * 1000.f / iters;
}

__device__ __forceinline__ void cp_async16(void* dst, const void* src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(dst))), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

namespace ephemeris {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;
constexpr int kEpochs = kThreads * kPerThread;

struct Segment {
    float start, inv_span;
};

template <int Terms>
__global__ void __launch_bounds__(kThreads)
evaluate_segments(const float4* __restrict__ epoch, const Segment* __restrict__ segments, const float4* __restrict__ coef,
                  float4* __restrict__ x, float4* __restrict__ y, float4* __restrict__ z, int count)
{
    static_assert(Terms <= kThreads, "one thread copies one term");
    __shared__ __align__(16) float4 s_coef[2][Terms];
    int seg = blockIdx.x;
    if (seg < count && threadIdx.x < Terms) cp_async16(&s_coef[0][threadIdx.x], coef + static_cast<size_t>(seg) * Terms + threadIdx.x);
    cp_commit();
    constexpr int kQuads = kPerThread / 4;
    float4 e[kQuads];
    if (seg < count) {
#pragma unroll
        for (int h = 0; h < kQuads; ++h) e[h] = __ldcs(epoch + static_cast<size_t>(seg) * (kEpochs / 4) + threadIdx.x + h * kThreads);
    }
    for (int buf = 0; seg < count; seg += gridDim.x, buf ^= 1) {
        const size_t base = static_cast<size_t>(seg) * (kEpochs / 4) + threadIdx.x;
        const Segment s = segments[seg];
        float t[kPerThread], px[kPerThread], py[kPerThread], pz[kPerThread];
#pragma unroll
        for (int h = 0; h < kQuads; ++h) {
            t[4 * h] = (e[h].x - s.start) * s.inv_span;
            t[4 * h + 1] = (e[h].y - s.start) * s.inv_span;
            t[4 * h + 2] = (e[h].z - s.start) * s.inv_span;
            t[4 * h + 3] = (e[h].w - s.start) * s.inv_span;
        }
        cp_wait<0>();
        __syncthreads();
        const int next = seg + gridDim.x;
        if (next < count && threadIdx.x < Terms)
            cp_async16(&s_coef[buf ^ 1][threadIdx.x], coef + static_cast<size_t>(next) * Terms + threadIdx.x);
        cp_commit();
        if (next < count) {
#pragma unroll
            for (int h = 0; h < kQuads; ++h) e[h] = __ldcs(epoch + static_cast<size_t>(next) * (kEpochs / 4) + threadIdx.x + h * kThreads);
        }

        const float4 top = s_coef[buf][Terms - 1];
#pragma unroll
        for (int q = 0; q < kPerThread; ++q) { px[q] = top.x; py[q] = top.y; pz[q] = top.z; }
#pragma unroll
        for (int k = Terms - 2; k >= 0; --k) {
            const float4 c = s_coef[buf][k];
#pragma unroll
            for (int q = 0; q < kPerThread; ++q) {
                px[q] = fmaf(px[q], t[q], c.x);
                py[q] = fmaf(py[q], t[q], c.y);
                pz[q] = fmaf(pz[q], t[q], c.z);
            }
        }
#pragma unroll
        for (int h = 0; h < kQuads; ++h) {
            __stcs(x + base + h * kThreads, make_float4(px[4 * h], px[4 * h + 1], px[4 * h + 2], px[4 * h + 3]));
            __stcs(y + base + h * kThreads, make_float4(py[4 * h], py[4 * h + 1], py[4 * h + 2], py[4 * h + 3]));
            __stcs(z + base + h * kThreads, make_float4(pz[4 * h], pz[4 * h + 1], pz[4 * h + 2], pz[4 * h + 3]));
        }
    }
}

template <int Terms>
void launch(int sms, const float4* epoch, const Segment* seg, const float4* coef, float4* x, float4* y, float4* z, int count)
{
    static int per_sm = 0;
    if (per_sm == 0) CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, evaluate_segments<Terms>, kThreads, 0));
    evaluate_segments<Terms><<<sms * per_sm, kThreads>>>(epoch, seg, coef, x, y, z, count);
}

}  // namespace ephemeris

int main()
{
    using namespace ephemeris;
    constexpr int kTerms = 96, kSegments = 528 * 32;
    const size_t n = static_cast<size_t>(kSegments) * kEpochs;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<float> epoch(n), gx(n), gy(n), gz(n);
    std::vector<Segment> seg(kSegments);
    std::vector<float4> coef(static_cast<size_t>(kSegments) * kTerms);
    for (int s = 0; s < kSegments; ++s) seg[s] = {static_cast<float>(s % 1024), 0.9375f};
    for (size_t i = 0; i < n; ++i) epoch[i] = seg[i / kEpochs].start + (hash32(static_cast<uint32_t>(i)) >> 20) / 4096.f;
    for (size_t i = 0; i < coef.size(); ++i) {
        const uint32_t h = static_cast<uint32_t>(4 * i);
        coef[i] = make_float4(unit(h) - 0.5f, unit(h + 1) - 0.5f, unit(h + 2) - 0.5f, 0.f);
    }
    float4 *d_epoch, *d_coef, *d_x, *d_y, *d_z; Segment* d_seg;
    CUDA_OK(cudaMalloc(&d_epoch, n * 4));
    CUDA_OK(cudaMalloc(&d_x, n * 4));
    CUDA_OK(cudaMalloc(&d_y, n * 4));
    CUDA_OK(cudaMalloc(&d_z, n * 4));
    CUDA_OK(cudaMalloc(&d_coef, coef.size() * sizeof(float4)));
    CUDA_OK(cudaMalloc(&d_seg, kSegments * sizeof(Segment)));
    CUDA_OK(cudaMemcpy(d_epoch, epoch.data(), n * 4, cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_coef, coef.data(), coef.size() * sizeof(float4), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_seg, seg.data(), kSegments * sizeof(Segment), cudaMemcpyHostToDevice));

    launch<16>(sms, d_epoch, d_seg, d_coef, d_x, d_y, d_z, kSegments);
    const float us = time_steps(3, 60, [&] { launch<kTerms>(sms, d_epoch, d_seg, d_coef, d_x, d_y, d_z, kSegments); });

    CUDA_OK(cudaMemcpy(gx.data(), d_x, n * 4, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(gy.data(), d_y, n * 4, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(gz.data(), d_z, n * 4, cudaMemcpyDeviceToHost));
    for (int s = 0; s < 20000; ++s) {
        const size_t i = s < 1024 ? n - 1 - s : hash32(s) % n;
        const Segment g = seg[i / kEpochs];
        const double t = (static_cast<double>(epoch[i]) - g.start) * g.inv_span;
        double x = 0, y = 0, z = 0;
        for (int k = kTerms - 1; k >= 0; --k) {
            const float4 c = coef[i / kEpochs * kTerms + k];
            x = x * t + c.x; y = y * t + c.y; z = z * t + c.z;
        }
        if (!(std::fabs(gx[i] - x) <= 1e-3) || !(std::fabs(gy[i] - y) <= 1e-3) || !(std::fabs(gz[i] - z) <= 1e-3)) {
            std::fprintf(stderr, "epoch %zu differs from the reference\n", i);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
