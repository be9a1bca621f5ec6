// SPDX-License-Identifier: Apache-2.0
// Dynamic-aperture study for a storage ring: particles are tracked turn by turn through a linear one-turn map (a rotation in each transverse plane) and a sextupole kick.
// Betatron tunes are read from orbits of 10^5..10^6 turns, so the map has to stay
// symplectic to ~1e-15; single precision makes the emittance drift within a few hundred
// turns.  The aperture is tested once in a while, as lost particles are rare.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define OK(x)                                                                    \
    do {                                                                         \
        cudaError_t c_ = (x);                                                    \
        if (c_ != cudaSuccess) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(c_));  \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr int kParticles = 132 * 2048 * 2;
constexpr int kTurns = 800;
constexpr int kTurnsPerCheck = 20;
constexpr int kRepeats = 30;

struct Ring {
    double cx, sx, cy, sy;   // rotation of the two planes
    double strength;         // sextupole
    double aperture2;
};

struct alignas(16) Phase { double x, px, y, py; };

__host__ __device__ inline Phase launchPoint(int i) {
    const double a = 0.02 + 0.10 * (double)(i % 733) / 733.0;
    const double b = 0.02 + 0.08 * (double)(i % 1009) / 1009.0;
    return Phase{a, 0.1 * b, b, -0.1 * a};
}

__host__ __device__ inline Phase oneTurn(const Phase& p, const Ring& r) {
    const double kx = p.px + r.strength * (p.x * p.x - p.y * p.y);
    const double ky = p.py - (r.strength + r.strength) * p.x * p.y;
    Phase q;
    q.x = r.cx * p.x + r.sx * kx;
    q.px = r.cx * kx - r.sx * p.x;
    q.y = r.cy * p.y + r.sy * ky;
    q.py = r.cy * ky - r.sy * p.y;
    return q;
}

__global__ void __launch_bounds__(256)
trackParticles(Phase* __restrict__ out, Ring ring, int particles) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= particles) return;
    Phase p = launchPoint(i);
    for (int t = 0; t < kTurns; t += kTurnsPerCheck) {
#pragma unroll 4
        for (int k = 0; k < kTurnsPerCheck; ++k) p = oneTurn(p, ring);
        if (p.x * p.x + p.y * p.y > ring.aperture2) break;
    }
    out[i] = p;
}

static Phase trackRef(int i, const Ring& ring) {
    Phase p = launchPoint(i);
    for (int t = 1; t <= kTurns; ++t) {
        p = oneTurn(p, ring);
        if (t % kTurnsPerCheck == 0 && p.x * p.x + p.y * p.y > ring.aperture2) break;
    }
    return p;
}

int main() {
    const double pi = 3.14159265358979323846;
    const double mux = 2.0 * pi * 0.205, muy = 2.0 * pi * 0.134;
    const Ring ring{std::cos(mux), std::sin(mux), std::cos(muy), std::sin(muy), 0.5, 4.0};

    Phase* out;
    OK(cudaMalloc(&out, sizeof(Phase) * kParticles));
    const int grid = (kParticles + 255) / 256;
    trackParticles<<<grid, 256>>>(out, ring, kParticles);
    OK(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    OK(cudaEventRecord(a));
    for (int r = 0; r < kRepeats; ++r) trackParticles<<<grid, 256>>>(out, ring, kParticles);
    OK(cudaEventRecord(b));
    OK(cudaEventSynchronize(b));
    OK(cudaGetLastError());
    float ms = 0.f;
    OK(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.3f\n", ms * 1000.f / kRepeats);

    std::vector<Phase> got(kParticles);
    OK(cudaMemcpy(got.data(), out, sizeof(Phase) * kParticles, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 7; i < kParticles; i += 241) {
        const Phase want = trackRef(i, ring);
        const double err = std::fabs(want.x - got[i].x) + std::fabs(want.px - got[i].px) +
                           std::fabs(want.y - got[i].y) + std::fabs(want.py - got[i].py);
        if (!(err < 1e-8)) ++bad;
    }
    if (bad) {
        printf("orbits off the reference: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
