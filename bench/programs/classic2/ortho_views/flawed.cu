// SPDX-License-Identifier: Apache-2.0
// Orthorectification planning: every ground point is projected into all views of a satellite stack by rational polynomial camera (RPC) models, and the views that see it are counted.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                 \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kViews = 16;
constexpr int kTerms = 20;
constexpr int kPoints = 4 << 20;
constexpr int kThreads = 256;
constexpr int kPerThread = 2;

struct Rpc {
    float line_num[kTerms], line_den[kTerms];
    float samp_num[kTerms], samp_den[kTerms];
    float lat_off, lon_off, h_off;
    float lat_scale, lon_scale, h_scale;     // reciprocals of the usual scales
};

__constant__ Rpc c_views[kViews];

__host__ __device__ inline uint32_t hashed(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x45d9f3bu;
    x ^= x >> 16;
    x *= 0x45d9f3bu;
    x ^= x >> 16;
    return x;
}
__host__ __device__ inline float signed_unit(uint32_t x)
{
    return (hashed(x) >> 8) * (2.0f / 16777216.0f) - 1.0f;
}
__host__ __device__ inline float3 ground_point(uint32_t i)   // lat, lon, height in local units
{
    return make_float3(signed_unit(i * 3 + 0), signed_unit(i * 3 + 1), 0.5f * signed_unit(i * 3 + 2));
}

__global__ void make_ground(float* lat, float* lon, float* height)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (uint32_t)kPoints) return;
    const float3 g = ground_point(i);
    lat[i] = g.x;
    lon[i] = g.y;
    height[i] = g.z;
}

// acc + coefficient * monomial
__device__ inline float accumulate(float coefficient, float monomial, float acc)
{
    return __fadd_rn(__fmul_rn(coefficient, monomial), acc);
}

// The twenty monomials, in RPC00B order.
__device__ inline void monomials(float p, float l, float h, float (&m)[kTerms])
{
    m[0] = 1.0f;   m[1] = l;       m[2] = p;       m[3] = h;
    m[4] = l * p;  m[5] = l * h;   m[6] = p * h;   m[7] = l * l;
    m[8] = p * p;  m[9] = h * h;   m[10] = m[4] * h;
    m[11] = m[7] * l;  m[12] = l * m[8];  m[13] = l * m[9];
    m[14] = m[7] * p;  m[15] = m[8] * p;  m[16] = p * m[9];
    m[17] = m[7] * h;  m[18] = m[8] * h;  m[19] = m[9] * h;
}

__device__ inline float cubic(const float* coefficients, const float (&m)[kTerms])
{
    float acc = coefficients[0];
#pragma unroll
    for (int t = 1; t < kTerms; ++t) acc = accumulate(coefficients[t], m[t], acc);
    return acc;
}

// Views are weighted by how near the image centre the point falls.
__global__ void __launch_bounds__(kThreads)
weigh_views(const float* __restrict__ lat, const float* __restrict__ lon,
            const float* __restrict__ height, float* __restrict__ weight)
{
    const int first = blockIdx.x * (kThreads * kPerThread) + threadIdx.x;
    float p[kPerThread], l[kPerThread], h[kPerThread], sum[kPerThread];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
        p[k] = lat[first + k * kThreads];
        l[k] = lon[first + k * kThreads];
        h[k] = height[first + k * kThreads];
        sum[k] = 0.0f;
    }
#pragma unroll 1
    for (int v = 0; v < kViews; ++v) {
        const Rpc& rpc = c_views[v];
#pragma unroll
        for (int k = 0; k < kPerThread; ++k) {
            float m[kTerms];
            monomials((p[k] - rpc.lat_off) * rpc.lat_scale, (l[k] - rpc.lon_off) * rpc.lon_scale,
                      (h[k] - rpc.h_off) * rpc.h_scale, m);
            const float line = __fdividef(cubic(rpc.line_num, m), cubic(rpc.line_den, m));
            const float samp = __fdividef(cubic(rpc.samp_num, m), cubic(rpc.samp_den, m));
            sum[k] += fmaxf(1.0f - fmaxf(fabsf(line), fabsf(samp)), 0.0f);
        }
    }
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) weight[first + k * kThreads] = sum[k];
}

static std::vector<Rpc> make_views()
{
    std::vector<Rpc> views(kViews);
    uint32_t seed = 900001u;
    for (Rpc& r : views) {
        for (int t = 0; t < kTerms; ++t) {
            const float small = t < 4 ? 0.02f : 0.004f;
            r.line_num[t] = small * signed_unit(seed++);
            r.samp_num[t] = small * signed_unit(seed++);
            r.line_den[t] = small * signed_unit(seed++);
            r.samp_den[t] = small * signed_unit(seed++);
        }
        r.line_num[2] += 0.9f;
        r.samp_num[1] += 0.9f;
        r.line_den[0] = r.samp_den[0] = 1.0f;
        r.lat_off = 0.3f * signed_unit(seed++);
        r.lon_off = 0.3f * signed_unit(seed++);
        r.h_off = 0.1f * signed_unit(seed++);
        r.lat_scale = r.lon_scale = 0.8f;
        r.h_scale = 1.5f;
    }
    return views;
}

static double host_cubic(const float* c, const double* m)
{
    double acc = 0.0;
    for (int t = 0; t < kTerms; ++t) acc += c[t] * m[t];
    return acc;
}

static bool verify(const std::vector<float>& weight, const std::vector<Rpc>& views)
{
    for (uint32_t n = 0; n < 4096; ++n) {
        const uint32_t i = hashed(n + 17u) % (uint32_t)kPoints;
        const float3 g = ground_point(i);
        double sum = 0.0;
        for (const Rpc& r : views) {
            const double p = ((double)g.x - r.lat_off) * r.lat_scale;
            const double l = ((double)g.y - r.lon_off) * r.lon_scale;
            const double h = ((double)g.z - r.h_off) * r.h_scale;
            const double m[kTerms] = {1, l, p, h, l * p, l * h, p * h, l * l, p * p, h * h,
                                      l * p * h, l * l * l, l * p * p, l * h * h, l * l * p,
                                      p * p * p, p * h * h, l * l * h, p * p * h, h * h * h};
            const double line = host_cubic(r.line_num, m) / host_cubic(r.line_den, m);
            const double samp = host_cubic(r.samp_num, m) / host_cubic(r.samp_den, m);
            sum += std::fmax(1.0 - std::fmax(std::fabs(line), std::fabs(samp)), 0.0);
        }
        if (!(std::fabs(weight[i] - sum) <= 1e-3 * sum + 1e-3)) {
            std::fprintf(stderr, "point %u: %f, expected %f\n", i, weight[i], sum);
            return false;
        }
    }
    return true;
}

int main()
{
    float *lat, *lon, *height, *weight;
    for (float** p : {&lat, &lon, &height, &weight}) CK(cudaMalloc(p, sizeof(float) * kPoints));
    make_ground<<<kPoints / 256, 256>>>(lat, lon, height);
    const std::vector<Rpc> views = make_views();
    CK(cudaMemcpyToSymbol(c_views, views.data(), sizeof(Rpc) * kViews));

    const int blocks = kPoints / (kThreads * kPerThread);
    weigh_views<<<blocks, kThreads>>>(lat, lon, height, weight);
    CK(cudaGetLastError());
    CK(cudaDeviceSynchronize());

    const int iterations = 60;
    cudaEvent_t start, stop;
    CK(cudaEventCreate(&start));
    CK(cudaEventCreate(&stop));
    CK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it)
        weigh_views<<<blocks, kThreads>>>(lat, lon, height, weight);
    CK(cudaEventRecord(stop));
    CK(cudaEventSynchronize(stop));
    CK(cudaGetLastError());
    float ms = 0.0f;
    CK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> host(kPoints);
    CK(cudaMemcpy(host.data(), weight, sizeof(float) * kPoints, cudaMemcpyDeviceToHost));
    const bool ok = verify(host, views);
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
