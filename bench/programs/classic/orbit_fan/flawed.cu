// SPDX-License-Identifier: Apache-2.0
// Fan of test-particle orbits in a fitted axisymmetric potential; the radial force is a polynomial in r^2.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CU(x)                                                                             \
    do {                                                                                  \
        if (const cudaError_t e = (x)) {                                                  \
            fprintf(stderr, "%s (%d)\n", cudaGetErrorString(e), __LINE__);                \
            exit(2);                                                                      \
        }                                                                                 \
    } while (0)

constexpr int kOrbits = 16384;
constexpr int kThreads = 128;
constexpr int kTerms = 48;
constexpr int kSteps = 500;
constexpr float kDt = 0.01f;

__constant__ float c_force[kTerms];

struct Orbit {
    float x, y, z, vx, vy, vz;
};

__device__ __forceinline__ float force_over_r(float u) {
    float p = c_force[kTerms - 1];
#pragma unroll
    for (int k = kTerms - 2; k >= 0; --k) p = fmaf(p, u, c_force[k]);
    return p;
}

__global__ void __launch_bounds__(kThreads) drift_kick(Orbit* __restrict__ orbits, int steps) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    Orbit o = orbits[i];
    for (int s = 0; s < steps; ++s) {
        o.x = fmaf(0.5f * kDt, o.vx, o.x);
        o.y = fmaf(0.5f * kDt, o.vy, o.y);
        o.z = fmaf(0.5f * kDt, o.vz, o.z);
        const float u = 0.5f * (o.x * o.x + o.y * o.y + 1.4f * o.z * o.z) - 1.f;
        const float f = -kDt * force_over_r(u);
        o.vx = fmaf(f, o.x, o.vx);
        o.vy = fmaf(f, o.y, o.vy);
        o.vz = fmaf(1.4f * f, o.z, o.vz);
        o.x = fmaf(0.5f * kDt, o.vx, o.x);
        o.y = fmaf(0.5f * kDt, o.vy, o.y);
        o.z = fmaf(0.5f * kDt, o.vz, o.z);
    }
    orbits[i] = o;
}

static Orbit launch_orbit(int i) {
    const double a = 2.399963 * i, h = (i % 97) / 97.0 - 0.5, r = 0.3 + 0.5 * (i % 1009) / 1009.0;
    return {(float)(r * std::cos(a)), (float)(r * std::sin(a)), (float)(0.4 * h),
            (float)(-0.5 * r * std::sin(a)), (float)(0.5 * r * std::cos(a)), (float)(0.2 * h)};
}

int main() {
    float force[kTerms];
    force[0] = 1.f;
    for (int k = 1; k < kTerms; ++k) force[k] = (k % 3 == 0 ? 0.3f : -0.25f) * std::pow(0.55f, (float)k);
    CU(cudaMemcpyToSymbol(c_force, force, sizeof(force)));

    std::vector<Orbit> orbits(kOrbits), got(kOrbits);
    for (int i = 0; i < kOrbits; ++i) orbits[i] = launch_orbit(i);
    Orbit* d_orbits;
    CU(cudaMalloc(&d_orbits, sizeof(Orbit) * kOrbits));
    CU(cudaMemcpy(d_orbits, orbits.data(), sizeof(Orbit) * kOrbits, cudaMemcpyHostToDevice));
    drift_kick<<<kOrbits / kThreads, kThreads>>>(d_orbits, kSteps);
    CU(cudaMemcpy(got.data(), d_orbits, sizeof(Orbit) * kOrbits, cudaMemcpyDeviceToHost));

    bool right = true;
    for (int i = 1; i < kOrbits; i += 271) {
        double p[3] = {orbits[i].x, orbits[i].y, orbits[i].z}, v[3] = {orbits[i].vx, orbits[i].vy, orbits[i].vz};
        const double shape[3] = {1.0, 1.0, 1.4f};
        for (int s = 0; s < kSteps; ++s) {
            for (int d = 0; d < 3; ++d) p[d] += 0.5 * kDt * v[d];
            const double u = 0.5 * (p[0] * p[0] + p[1] * p[1] + 1.4f * p[2] * p[2]) - 1.0;
            double f = 0.0;
            for (int k = kTerms - 1; k >= 0; --k) f = f * u + force[k];
            for (int d = 0; d < 3; ++d) v[d] -= kDt * f * shape[d] * p[d];
            for (int d = 0; d < 3; ++d) p[d] += 0.5 * kDt * v[d];
        }
        if (!(std::fabs(p[0] - got[i].x) < 2e-3 && std::fabs(p[1] - got[i].y) < 2e-3 && std::fabs(p[2] - got[i].z) < 2e-3))
            right = false;
    }

    cudaEvent_t a, b;
    CU(cudaEventCreate(&a));
    CU(cudaEventCreate(&b));
    const int rounds = 200;
    CU(cudaEventRecord(a));
    for (int i = 0; i < rounds; ++i) drift_kick<<<kOrbits / kThreads, kThreads>>>(d_orbits, kSteps);
    CU(cudaEventRecord(b));
    CU(cudaEventSynchronize(b));
    CU(cudaGetLastError());
    float ms = 0.f;
    CU(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.3f\n", 1e3 * ms / rounds);
    return right ? 0 : 1;
}
