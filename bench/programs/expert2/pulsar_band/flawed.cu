// SPDX-License-Identifier: Apache-2.0
// Total-power bandpass of a radio telescope backend.
// Every frame holds one complex voltage for each of 1024 frequency channels. The
// bandpass is the Hann-smoothed power of each channel, integrated over all frames of
// a scan. Blocks are persistent: each takes a contiguous run of frames and streams
// them through a ring of shared-memory slots.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int CHANNELS = 1024;
constexpr int THREADS = 256;
constexpr int PER_THREAD = CHANNELS / THREADS;
constexpr int STAGES = 8;
constexpr int FRAME_BYTES = CHANNELS * sizeof(float2);
constexpr int SMEM_BYTES = STAGES * FRAME_BYTES;

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void synth_voltages(float2* v, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
        const unsigned h = mix((unsigned)i);
        v[i] = make_float2((h & 0xffff) / 32768.0f - 1.0f, (h >> 16) / 32768.0f - 1.0f);
    }
}

__device__ __forceinline__ void cp_async16(void* dst, const void* src) {
    const unsigned d = (unsigned)__cvta_generic_to_shared(dst);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(d), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" :: "n"(N) : "memory"); }

__device__ __forceinline__ void fetch_frame(float2* slot, const float2* frame) {
    constexpr int VECS = FRAME_BYTES / 16;
#pragma unroll
    for (int i = 0; i < VECS / THREADS; ++i) {
        const int v = i * THREADS + threadIdx.x;
        cp_async16(reinterpret_cast<float4*>(slot) + v, reinterpret_cast<const float4*>(frame) + v);
    }
}

// Hann window applied in the channel domain (band edges wrap).
__device__ __forceinline__ float hann_power(const float2* f, int c) {
    const float2 m = f[c];
    const float2 l = f[(c + CHANNELS - 1) & (CHANNELS - 1)];
    const float2 r = f[(c + 1) & (CHANNELS - 1)];
    const float re = m.x - 0.5f * (l.x + r.x);
    const float im = m.y - 0.5f * (l.y + r.y);
    return re * re + im * im;
}

__global__ void __launch_bounds__(THREADS) integrate_band(const float2* __restrict__ volts, float* __restrict__ band, int frames) {
    extern __shared__ __align__(16) float2 ring[];
    const int per = (frames + gridDim.x - 1) / gridDim.x;
    const int first = blockIdx.x * per;
    const int count = min(per, frames - first);
    if (count <= 0) return;
    const float2* src = volts + (size_t)first * CHANNELS;

    float power[PER_THREAD] = {};
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < count) fetch_frame(ring + s * CHANNELS, src + (size_t)s * CHANNELS);
        cp_commit();
    }
    for (int k = 0; k < count; ++k) {
        cp_wait<0>();
        __syncthreads();
        const int next = k + STAGES - 1;
        if (next < count) fetch_frame(ring + (next % STAGES) * CHANNELS, src + (size_t)next * CHANNELS);
        cp_commit();

        const float2* frame = ring + (k % STAGES) * CHANNELS;
#pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) power[j] += hann_power(frame, j * THREADS + threadIdx.x);
    }
#pragma unroll
    for (int j = 0; j < PER_THREAD; ++j) atomicAdd(&band[j * THREADS + threadIdx.x], power[j]);
}

__global__ void band_reference(const float2* volts, double* band, int frames) {
    const int c = threadIdx.x + (blockIdx.x & 3) * 256;
    const int parts = gridDim.x / 4;
    double sum = 0.0;
    for (int f = blockIdx.x / 4; f < frames; f += parts) {
        const float2* v = volts + (size_t)f * CHANNELS;
        const float2 m = v[c], l = v[(c + CHANNELS - 1) % CHANNELS], r = v[(c + 1) % CHANNELS];
        const double re = m.x - 0.5 * ((double)l.x + r.x), im = m.y - 0.5 * ((double)l.y + r.y);
        sum += re * re + im * im;
    }
    atomicAdd(&band[c], sum);
}

int main() {
    const int frames = 65536, iterations = 40;
    const size_t n = (size_t)frames * CHANNELS;
    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));

    float2* volts; float* band; double* ref;
    CK(cudaMalloc(&volts, n * sizeof(float2)));
    CK(cudaMalloc(&band, CHANNELS * sizeof(float)));
    CK(cudaMalloc(&ref, CHANNELS * sizeof(double)));
    synth_voltages<<<sms * 8, 256>>>(volts, n);
    CK(cudaGetLastError());
    CK(cudaFuncSetAttribute(integrate_band, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    auto step = [&] {
        CK(cudaMemsetAsync(band, 0, CHANNELS * sizeof(float)));
        integrate_band<<<sms, THREADS, SMEM_BYTES>>>(volts, band, frames);
    };
    step();
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    CK(cudaMemset(ref, 0, CHANNELS * sizeof(double)));
    band_reference<<<1024, 256>>>(volts, ref, frames);
    CK(cudaGetLastError());
    std::vector<float> got(CHANNELS);
    std::vector<double> want(CHANNELS);
    CK(cudaMemcpy(got.data(), band, CHANNELS * sizeof(float), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(want.data(), ref, CHANNELS * sizeof(double), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int c = 0; c < CHANNELS; ++c)
        if (!(std::fabs(got[c] - want[c]) <= 1e-3 * want[c])) ++bad;
    std::printf("channels out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
