// SPDX-License-Identifier: Apache-2.0
// Parameter sweep of a SEIR epidemic model, integrated by an explicit Runge-Kutta method given as a tableau.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define OK(call)                                                                       \
    if (cudaError_t err = (call); err != cudaSuccess) {                                \
        std::printf("%s at line %d\n", cudaGetErrorString(err), __LINE__);             \
        std::exit(2);                                                                  \
    }

constexpr int kStages = 6;
constexpr int kSpecies = 4;

struct Tableau {
    int stages;
    float a[kStages][kStages];
    float b[kStages];
};

struct Rates {
    float beta, sigma, gamma, wane;
};

template <typename Real>
__host__ __device__ inline void seir(const Real y[kSpecies], const Rates& r, Real dy[kSpecies]) {
    const Real infect = (Real)r.beta * y[0] * y[2];
    const Real onset = (Real)r.sigma * y[1];
    const Real recover = (Real)r.gamma * y[2];
    const Real lose = (Real)r.wane * y[3];
    dy[0] = lose - infect;
    dy[1] = infect - onset;
    dy[2] = onset - recover;
    dy[3] = recover - lose;
}

__host__ __device__ inline Rates rates_of(int i, int n) {
    const float u = (float)i / n, v = (float)((i * 7919ll) % n) / n;
    return {0.3f + 0.9f * u, 0.1f + 0.3f * v, 0.08f + 0.1f * (1.f - u), 0.002f + 0.01f * v};
}

__global__ void __launch_bounds__(128)
integrate(float4* __restrict__ state, const Rates* __restrict__ rates, Tableau tab, float dt, int steps, int n) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= n) return;
    const Rates r = rates[i];
    float4 s = state[i];
    float y[kSpecies] = {s.x, s.y, s.z, s.w};
    for (int step = 0; step < steps; ++step) {
        float k[kStages][kSpecies];
#pragma unroll
        for (int stage = 0; stage < tab.stages; ++stage) {
            float at[kSpecies] = {y[0], y[1], y[2], y[3]};
#pragma unroll
            for (int j = 0; j < stage; ++j) {
                const float w = dt * tab.a[stage][j];
#pragma unroll
                for (int c = 0; c < kSpecies; ++c) at[c] = fmaf(w, k[j][c], at[c]);
            }
            seir(at, r, k[stage]);
        }
#pragma unroll
        for (int stage = 0; stage < tab.stages; ++stage) {
            const float w = dt * tab.b[stage];
#pragma unroll
            for (int c = 0; c < kSpecies; ++c) y[c] = fmaf(w, k[stage][c], y[c]);
        }
    }
    state[i] = make_float4(y[0], y[1], y[2], y[3]);
}

__global__ void reset(float4* state, Rates* rates, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    state[i] = make_float4(0.999f, 0.f, 0.001f, 0.f);
    rates[i] = rates_of(i, n);
}

static Tableau fehlberg() {
    Tableau t{};
    t.stages = kStages;
    const double a[6][6] = {{0},
                            {1. / 4},
                            {3. / 32, 9. / 32},
                            {1932. / 2197, -7200. / 2197, 7296. / 2197},
                            {439. / 216, -8., 3680. / 513, -845. / 4104},
                            {-8. / 27, 2., -3544. / 2565, 1859. / 4104, -11. / 40}};
    const double b[6] = {16. / 135, 0., 6656. / 12825, 28561. / 56430, -9. / 50, 2. / 55};
    for (int i = 0; i < 6; ++i) {
        t.b[i] = (float)b[i];
        for (int j = 0; j < 6; ++j) t.a[i][j] = (float)a[i][j];
    }
    return t;
}

int main() {
    const int n = 1 << 19, steps = 100;
    const float dt = 0.25f;
    const Tableau tab = fehlberg();
    float4* d_state;
    Rates* d_rates;
    OK(cudaMalloc(&d_state, n * sizeof(float4)));
    OK(cudaMalloc(&d_rates, n * sizeof(Rates)));
    reset<<<n / 256, 256>>>(d_state, d_rates, n);
    integrate<<<n / 128, 128>>>(d_state, d_rates, tab, dt, steps, n);
    std::vector<float4> got(n);
    OK(cudaMemcpy(got.data(), d_state, n * sizeof(float4), cudaMemcpyDeviceToHost));

    bool fine = true;
    for (int i = 17; i < n; i += 2003) {
        const Rates r = rates_of(i, n);
        double y[kSpecies] = {0.999f, 0., 0.001f, 0.};
        for (int step = 0; step < steps; ++step) {
            double k[kStages][kSpecies];
            for (int st = 0; st < kStages; ++st) {
                double at[kSpecies];
                for (int c = 0; c < kSpecies; ++c) {
                    at[c] = y[c];
                    for (int j = 0; j < st; ++j) at[c] += dt * tab.a[st][j] * k[j][c];
                }
                seir(at, r, k[st]);
            }
            for (int c = 0; c < kSpecies; ++c)
                for (int st = 0; st < kStages; ++st) y[c] += dt * tab.b[st] * k[st][c];
        }
        const float g[kSpecies] = {got[i].x, got[i].y, got[i].z, got[i].w};
        for (int c = 0; c < kSpecies; ++c)
            if (!(std::fabs(g[c] - y[c]) < 1e-3)) fine = false;
    }

    cudaEvent_t t0, t1;
    OK(cudaEventCreate(&t0));
    OK(cudaEventCreate(&t1));
    const int rounds = 60;
    OK(cudaEventRecord(t0));
    for (int i = 0; i < rounds; ++i) {
        reset<<<n / 256, 256>>>(d_state, d_rates, n);
        integrate<<<n / 128, 128>>>(d_state, d_rates, tab, dt, steps, n);
    }
    OK(cudaEventRecord(t1));
    OK(cudaEventSynchronize(t1));
    OK(cudaGetLastError());
    float ms = 0.f;
    OK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / rounds);
    return fine ? 0 : 1;
}
