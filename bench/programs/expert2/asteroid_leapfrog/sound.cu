// SPDX-License-Identifier: Apache-2.0
// Leapfrog integration of asteroids (test particles) in the field of the Sun and planets.
// Positions must hold to some metres over years of orbit (about 1e-11 of an
// astronomical unit), so the state and the force sum are kept in double precision.
// The planets' tracks are prepared on the host; one call advances STEPS steps.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int BODIES = 9;                    // the Sun and eight planets
constexpr int STEPS = 64;
constexpr int ASTEROIDS = 132 * 2048;
constexpr int THREADS = 256;

struct __align__(16) Body { double x, y, z, gm; };
struct __align__(16) State { double x, y, z, vx, vy, vz; };

__host__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void __launch_bounds__(THREADS)
advance(const State* __restrict__ from, State* __restrict__ to, const Body* __restrict__ tracks, double dt) {
    __shared__ Body track[STEPS * BODIES];
    for (int i = threadIdx.x; i < STEPS * BODIES; i += THREADS) track[i] = tracks[i];
    __syncthreads();

    const int id = blockIdx.x * THREADS + threadIdx.x;
    State s = from[id];
    for (int k = 0; k < STEPS; ++k) {
        s.x = fma(0.5 * dt, s.vx, s.x);
        s.y = fma(0.5 * dt, s.vy, s.y);
        s.z = fma(0.5 * dt, s.vz, s.z);
        double ax = 0.0, ay = 0.0, az = 0.0;
#pragma unroll
        for (int b = 0; b < BODIES; ++b) {
            const Body p = track[k * BODIES + b];
            const double dx = p.x - s.x, dy = p.y - s.y, dz = p.z - s.z;
            const double inv = rsqrt(fma(dx, dx, fma(dy, dy, dz * dz)));
            const double w = p.gm * inv * inv * inv;
            ax = fma(w, dx, ax);
            ay = fma(w, dy, ay);
            az = fma(w, dz, az);
        }
        s.vx = fma(dt, ax, s.vx);
        s.vy = fma(dt, ay, s.vy);
        s.vz = fma(dt, az, s.vz);
        s.x = fma(0.5 * dt, s.vx, s.x);
        s.y = fma(0.5 * dt, s.vy, s.y);
        s.z = fma(0.5 * dt, s.vz, s.z);
    }
    to[id] = s;
}

static State step_on_host(State s, const std::vector<Body>& tracks, double dt) {
    for (int k = 0; k < STEPS; ++k) {
        s.x += 0.5 * dt * s.vx; s.y += 0.5 * dt * s.vy; s.z += 0.5 * dt * s.vz;
        double ax = 0, ay = 0, az = 0;
        for (int b = 0; b < BODIES; ++b) {
            const Body& p = tracks[k * BODIES + b];
            const double dx = p.x - s.x, dy = p.y - s.y, dz = p.z - s.z;
            const double r2 = dx * dx + dy * dy + dz * dz, w = p.gm / (r2 * std::sqrt(r2));
            ax += w * dx; ay += w * dy; az += w * dz;
        }
        s.vx += dt * ax; s.vy += dt * ay; s.vz += dt * az;
        s.x += 0.5 * dt * s.vx; s.y += 0.5 * dt * s.vy; s.z += 0.5 * dt * s.vz;
    }
    return s;
}

int main() {
    const int iterations = 40;
    const double gm_sun = 2.9591220828e-4, dt = 0.5;   // AU^3/day^2, days
    const double radius[BODIES] = { 0, 0.387, 0.723, 1.0, 1.524, 5.203, 9.537, 19.19, 30.07 };
    const double mass[BODIES] = { 1, 1.66e-7, 2.45e-6, 3.0e-6, 3.2e-7, 9.54e-4, 2.86e-4, 4.37e-5, 5.15e-5 };

    std::vector<Body> tracks(STEPS * BODIES);
    for (int k = 0; k < STEPS; ++k)
        for (int b = 0; b < BODIES; ++b) {
            const double w = b ? std::sqrt(gm_sun / (radius[b] * radius[b] * radius[b])) : 0.0;
            const double a = 0.7 * b + w * (k + 0.5) * dt;
            tracks[k * BODIES + b] = { radius[b] * std::cos(a), radius[b] * std::sin(a), 0.01 * b * std::sin(a), gm_sun * mass[b] };
        }
    std::vector<State> start(ASTEROIDS);
    for (int i = 0; i < ASTEROIDS; ++i) {
        auto u = [&](unsigned k) { return mix(4u * i + k) / 4294967296.0; };
        const double r = 2.1 + 1.2 * u(0), a = 6.283185307 * u(1), v = std::sqrt(gm_sun / r);
        start[i] = { r * std::cos(a), r * std::sin(a), 0.2 * (u(2) - 0.5), -v * std::sin(a), v * std::cos(a), 0.1 * v * (u(3) - 0.5) };
    }

    State *from, *to; Body* d_tracks;
    CK(cudaMalloc(&from, ASTEROIDS * sizeof(State)));
    CK(cudaMalloc(&to, ASTEROIDS * sizeof(State)));
    CK(cudaMalloc(&d_tracks, tracks.size() * sizeof(Body)));
    CK(cudaMemcpy(from, start.data(), ASTEROIDS * sizeof(State), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_tracks, tracks.data(), tracks.size() * sizeof(Body), cudaMemcpyHostToDevice));

    advance<<<ASTEROIDS / THREADS, THREADS>>>(from, to, d_tracks, dt);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) advance<<<ASTEROIDS / THREADS, THREADS>>>(from, to, d_tracks, dt);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<State> got(ASTEROIDS);
    CK(cudaMemcpy(got.data(), to, ASTEROIDS * sizeof(State), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 0; i < ASTEROIDS; i += 127) {
        const State w = step_on_host(start[i], tracks, dt);
        const double err = std::fabs(w.x - got[i].x) + std::fabs(w.y - got[i].y) + std::fabs(w.z - got[i].z);
        if (!(err <= 1e-11)) ++bad;
    }
    std::printf("asteroids off track: %d\n", bad);
    return bad ? 1 : 0;
}
