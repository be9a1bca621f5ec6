// SPDX-License-Identifier: Apache-2.0
// Ensemble of FitzHugh-Nagumo neurons under individual currents, fourth-order Runge-Kutta.
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

struct Params {
    float current, a, b, tau;
};

__host__ __device__ inline float2 slope(float v, float w, const Params& p) {
    float2 d;
    d.x = v - v * v * v * (1.f / 3.f) - w + p.current;
    d.y = (v + p.a - p.b * w) * p.tau;
    return d;
}

__host__ __device__ inline float2 rk4(float2 s, const Params& p, float dt) {
    const float2 k1 = slope(s.x, s.y, p);
    const float2 k2 = slope(s.x + 0.5f * dt * k1.x, s.y + 0.5f * dt * k1.y, p);
    const float2 k3 = slope(s.x + 0.5f * dt * k2.x, s.y + 0.5f * dt * k2.y, p);
    const float2 k4 = slope(s.x + dt * k3.x, s.y + dt * k3.y, p);
    s.x += dt * (1.f / 6.f) * (k1.x + 2.f * (k2.x + k3.x) + k4.x);
    s.y += dt * (1.f / 6.f) * (k1.y + 2.f * (k2.y + k3.y) + k4.y);
    return s;
}

__global__ void __launch_bounds__(128)
advance_neurons(float2* __restrict__ state, const Params* __restrict__ params, int n, float dt, int steps) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Params p = params[i];
    float2 s = state[i];
    for (int t = 0; t < steps; ++t) s = rk4(s, p, dt);
    state[i] = s;
}

__global__ void reset_neurons(float2* state, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) state[i] = make_float2(-1.f + 0.0001f * (float)(i % 1000), -0.5f);
}

int main() {
    const int n = 65536, steps = 200;
    const float dt = 0.02f;
    std::vector<Params> params(n);
    for (int i = 0; i < n; ++i)
        params[i] = {0.3f + 0.4f * (float)(i % 311) / 311.f, 0.7f, 0.8f - 0.1f * (float)(i % 7) / 7.f, 0.08f};
    float2* state;
    Params* d_params;
    CUDA_CHECK(cudaMalloc(&state, n * sizeof(float2)));
    CUDA_CHECK(cudaMalloc(&d_params, n * sizeof(Params)));
    CUDA_CHECK(cudaMemcpy(d_params, params.data(), n * sizeof(Params), cudaMemcpyHostToDevice));

    const int threads = 128, blocks = (n + threads - 1) / threads;
    // One recording interval of the simulation.
    auto interval = [&] {
        reset_neurons<<<blocks, threads>>>(state, n);
        advance_neurons<<<blocks, threads>>>(state, d_params, n, dt, steps);
    };
    const double us = time_us(interval);

    std::vector<float2> got(n);
    CUDA_CHECK(cudaMemcpy(got.data(), state, n * sizeof(float2), cudaMemcpyDeviceToHost));
    bool ok = true;
    double checksum = 0.0;
    for (int i = 0; i < n; i += 37) {
        float2 s = make_float2(-1.f + 0.0001f * (float)(i % 1000), -0.5f);
        for (int t = 0; t < steps; ++t) s = rk4(s, params[i], dt);
        if (!(std::fabs(s.x - got[i].x) < 1e-3f && std::fabs(s.y - got[i].y) < 1e-3f)) ok = false;
        checksum += got[i].x + got[i].y;
    }
    std::printf("checksum: %.5f\n", checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
