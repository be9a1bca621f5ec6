// SPDX-License-Identifier: Apache-2.0
// Excitable-membrane ensemble (FitzHugh-Nagumo), stored and advanced in half precision. Every cell is advanced by a fixed number of explicit substeps per output frame.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(call)                                                            \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kCells = 16 << 20;
constexpr int kSubsteps = 64;
constexpr int kThreads = 256;

// Model constants (time step folded into the recovery rate).
constexpr float kDt = 0.0625f;
constexpr float kThird = -0.333251953125f;
constexpr float kRecovery = 0.0048828125f;
constexpr float kBeta = -0.7998046875f;
constexpr float kAlpha = 0.7001953125f;

using value_t = __half;
__device__ inline value_t splat(float x) { return __float2half_rn(x); }
__device__ inline value_t mad(value_t a, value_t b, value_t c) { return __hfma(a, b, c); }
__device__ inline value_t mul(value_t a, value_t b) { return __hmul(a, b); }

constexpr int kCellsPerThread = sizeof(value_t) / sizeof(__half);

__host__ __device__ inline float unit(uint32_t x)
{
    x = (x ^ 61u) ^ (x >> 16);
    x *= 9u;
    x ^= x >> 4;
    x *= 0x27d4eb2du;
    x ^= x >> 15;
    return (x & 0xffffu) * (1.0f / 65536.0f);
}
__host__ __device__ inline float start_voltage(uint32_t i) { return -1.0f + 0.5f * unit(i); }
__host__ __device__ inline float start_recovery(uint32_t i) { return -0.6f + 0.2f * unit(i + 77777777u); }
__host__ __device__ inline float drive_current(uint32_t i) { return 0.1f + 0.2f * unit(i + 155555555u); }

__global__ void init_cells(__half* v, __half* w, __half* drive)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kCells) return;
    v[i] = __float2half_rn(start_voltage(i));
    w[i] = __float2half_rn(start_recovery(i));
    drive[i] = __float2half_rn(drive_current(i));
}

__device__ inline void substep(value_t& v, value_t& w, value_t drive)
{
    const value_t cubic = mad(mul(v, v), splat(kThird), splat(1.0f));
    value_t dv = mad(cubic, v, drive);
    dv = mad(w, splat(-1.0f), dv);
    value_t dw = mad(w, splat(kBeta), splat(kAlpha));
    dw = mad(v, splat(1.0f), dw);
    v = mad(dv, splat(kDt), v);
    w = mad(dw, splat(kRecovery), w);
}

__global__ void __launch_bounds__(kThreads)
advance_cells(const value_t* __restrict__ v_in, const value_t* __restrict__ w_in,
              const value_t* __restrict__ drive_in, value_t* __restrict__ v_out,
              value_t* __restrict__ w_out)
{
    const int i = blockIdx.x * kThreads + threadIdx.x;
    value_t v = v_in[i];
    value_t w = w_in[i];
    const value_t drive = drive_in[i];
#pragma unroll 4
    for (int s = 0; s < kSubsteps; ++s) substep(v, w, drive);
    v_out[i] = v;
    w_out[i] = w;
}

// Host model: every operation rounded to half.
static double round_half(double x) { return (double)__half2float(__double2half(x)); }
static double host_mad(double a, double b, double c) { return round_half(a * b + c); }

static bool verify(const std::vector<__half>& v, const std::vector<__half>& w)
{
    for (uint32_t n = 0; n < 4000; ++n) {
        const uint32_t i = (uint32_t)(((uint64_t)n * 2654435761ull) % kCells);
        double hv = round_half(start_voltage(i));
        double hw = round_half(start_recovery(i));
        const double drive = round_half(drive_current(i));
        for (int s = 0; s < kSubsteps; ++s) {
            const double cubic = host_mad(round_half(hv * hv), kThird, 1.0);
            double dv = host_mad(cubic, hv, drive);
            dv = host_mad(hw, -1.0, dv);
            double dw = host_mad(hw, kBeta, kAlpha);
            dw = host_mad(hv, 1.0, dw);
            hv = host_mad(dv, kDt, hv);
            hw = host_mad(dw, kRecovery, hw);
        }
        const double ev = std::fabs((double)__half2float(v[i]) - hv);
        const double ew = std::fabs((double)__half2float(w[i]) - hw);
        if (!(ev < 3e-2 && ew < 3e-2)) {
            std::fprintf(stderr, "cell %u: off by %g (v), %g (w)\n", i, ev, ew);
            return false;
        }
    }
    return true;
}

int main()
{
    __half *v0, *w0, *drive, *v1, *w1;
    const size_t bytes = sizeof(__half) * (size_t)kCells;
    for (__half** p : {&v0, &w0, &drive, &v1, &w1}) CUDA_OK(cudaMalloc(p, bytes));
    init_cells<<<kCells / 256, 256>>>(v0, w0, drive);
    CUDA_OK(cudaGetLastError());

    const int blocks = kCells / kCellsPerThread / kThreads;
    auto frame = [&] {
        advance_cells<<<blocks, kThreads>>>((const value_t*)v0, (const value_t*)w0,
                                            (const value_t*)drive, (value_t*)v1, (value_t*)w1);
    };
    frame();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    const int iterations = 100;
    cudaEvent_t begin, end;
    CUDA_OK(cudaEventCreate(&begin));
    CUDA_OK(cudaEventCreate(&end));
    CUDA_OK(cudaEventRecord(begin));
    for (int it = 0; it < iterations; ++it) frame();
    CUDA_OK(cudaEventRecord(end));
    CUDA_OK(cudaEventSynchronize(end));
    CUDA_OK(cudaGetLastError());
    float ms = 0.0f;
    CUDA_OK(cudaEventElapsedTime(&ms, begin, end));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<__half> hv(kCells), hw(kCells);
    CUDA_OK(cudaMemcpy(hv.data(), v1, bytes, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(hw.data(), w1, bytes, cudaMemcpyDeviceToHost));
    const bool ok = verify(hv, hw);
    for (__half* p : {v0, w0, drive, v1, w1}) CUDA_OK(cudaFree(p));
    std::printf(ok ? "ok\n" : "MISMATCH\n");
    return ok ? 0 : 1;
}
