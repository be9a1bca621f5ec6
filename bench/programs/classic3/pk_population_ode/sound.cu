// SPDX-License-Identifier: Apache-2.0. Population pharmacokinetics: an oral dose in a gut / central / peripheral
// model with saturable elimination, one virtual patient per thread,
// classical Runge-Kutta with the whole state in registers.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kBlock = 256;
constexpr int kPatients = kBlock * 132 * 8 * 4;
constexpr int kSteps = 120;
constexpr float kDt = 0.1f;         // hours
constexpr float kKm = 4.0f, kDose = 10.0f;

struct Patient { float ka, k12, k21, vmax; };

__host__ __device__ inline float spread(uint32_t i, uint32_t what)
{
    uint32_t h = i * 2654435761u + what * 2246822519u;
    h ^= h >> 15; h *= 0x2c1b3c6du; h ^= h >> 12;
    return 0.7f + 0.6f * (h >> 8) * (1.0f / 16777216.0f);
}
__host__ __device__ inline Patient enrol(uint32_t i)
{
    return {0.9f * spread(i, 0), 0.30f * spread(i, 1), 0.22f * spread(i, 2), 1.5f * spread(i, 3)};
}

__global__ void recruit(float4* p)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const Patient q = enrol(i);
    p[i] = make_float4(q.ka, q.k12, q.k21, q.vmax);
}

__device__ __forceinline__ void rates(float4 q, float g, float c, float p,
                                      float& dg, float& dc, float& dp)
{
    dg = -q.x * g;
    dp = fmaf(q.y, c, -q.z * p);
    dc = fmaf(-q.w * c, __fdividef(1.0f, kKm + c), -dg - dp);
}

// Final amounts and the exposure (area under the central curve).
__global__ void __launch_bounds__(kBlock, 8)
simulate(const float4* __restrict__ patients, float4* __restrict__ result)
{
    const int i = blockIdx.x * kBlock + threadIdx.x;
    const float4 q = patients[i];
    float g = kDose, c = 0.0f, p = 0.0f, auc = 0.0f;
#pragma unroll 2
    for (int s = 0; s < kSteps; ++s) {
        float dg, dc, dp, sg, sc, sp;
        rates(q, g, c, p, dg, dc, dp);
        sg = dg; sc = dc; sp = dp;
        rates(q, fmaf(0.5f * kDt, dg, g), fmaf(0.5f * kDt, dc, c), fmaf(0.5f * kDt, dp, p), dg, dc, dp);
        sg = fmaf(2.0f, dg, sg); sc = fmaf(2.0f, dc, sc); sp = fmaf(2.0f, dp, sp);
        rates(q, fmaf(0.5f * kDt, dg, g), fmaf(0.5f * kDt, dc, c), fmaf(0.5f * kDt, dp, p), dg, dc, dp);
        sg = fmaf(2.0f, dg, sg); sc = fmaf(2.0f, dc, sc); sp = fmaf(2.0f, dp, sp);
        rates(q, fmaf(kDt, dg, g), fmaf(kDt, dc, c), fmaf(kDt, dp, p), dg, dc, dp);
        auc = fmaf(0.5f * kDt, c, auc);
        g = fmaf(kDt / 6.0f, sg + dg, g);
        c = fmaf(kDt / 6.0f, sc + dc, c);
        p = fmaf(kDt / 6.0f, sp + dp, p);
        auc = fmaf(0.5f * kDt, c, auc);
    }
    result[i] = make_float4(g, c, p, auc);
}

int main()
{
    float4 *patients, *result;
    CHECK(cudaMalloc(&patients, kPatients * sizeof(float4)));
    CHECK(cudaMalloc(&result, kPatients * sizeof(float4)));
    recruit<<<kPatients / kBlock, kBlock>>>(patients);
    CHECK(cudaGetLastError());

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    for (int i = -2; i < iterations; ++i) {
        if (i == 0) CHECK(cudaEventRecord(t0));
        simulate<<<kPatients / kBlock, kBlock>>>(patients, result);
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float4> got(kPatients);
    CHECK(cudaMemcpy(got.data(), result, kPatients * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int k = 0; k < 400; ++k) {
        const int i = int((k * 100003LL + 9) % kPatients);
        const Patient q = enrol(i);
        auto f = [&](const double* y, double* d) {
            d[0] = -q.ka * y[0];
            d[2] = q.k12 * y[1] - q.k21 * y[2];
            d[1] = -d[0] - d[2] - q.vmax * y[1] / (kKm + y[1]);
        };
        double y[3] = {kDose, 0.0, 0.0}, auc = 0.0;
        for (int s = 0; s < kSteps; ++s) {
            double d[4][3], z[3];
            f(y, d[0]);
            for (int r = 1; r < 4; ++r) {
                for (int j = 0; j < 3; ++j) z[j] = y[j] + (r < 3 ? 0.5 : 1.0) * kDt * d[r - 1][j];
                f(z, d[r]);
            }
            auc += 0.5 * kDt * y[1];
            for (int j = 0; j < 3; ++j)
                y[j] += kDt / 6.0 * (d[0][j] + 2.0 * d[1][j] + 2.0 * d[2][j] + d[3][j]);
            auc += 0.5 * kDt * y[1];
        }
        const float4 r = got[i];
        const double err = std::fmax(std::fmax(std::fabs(r.x - y[0]), std::fabs(r.y - y[1])),
                                     std::fmax(std::fabs(r.z - y[2]), 0.1 * std::fabs(r.w - auc)));
        if (!(err < 1e-3)) {
            std::printf("patient %d: c %g auc %g, expected %g %g\n", i, r.y, r.w, y[1], auc);
            return 1;
        }
    }
    return 0;
}
