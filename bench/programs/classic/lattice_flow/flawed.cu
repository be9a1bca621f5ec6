// SPDX-License-Identifier: Apache-2.0
// Two-dimensional lattice Boltzmann flow (D2Q9, BGK collision, periodic box), pull scheme.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(2); } } while (0)

constexpr int kWidth = 2048, kHeight = 2048, kCells = kWidth * kHeight;
constexpr int kDirs = 9;
constexpr float kOmega = 1.2f;

__host__ __device__ inline size_t slot(int q, int cell) { return (size_t)cell * kDirs + q; }

__host__ __device__ inline float equilibrium(int q, float rho, float ux, float uy) {
    const int ex[kDirs] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    const int ey[kDirs] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    const float w = q == 0 ? 4.f / 9.f : q < 5 ? 1.f / 9.f : 1.f / 36.f;
    const float eu = ex[q] * ux + ey[q] * uy;
    return w * rho * (1.f + 3.f * eu + 4.5f * eu * eu - 1.5f * (ux * ux + uy * uy));
}

__host__ __device__ inline void initial_flow(int x, int y, float& rho, float& ux, float& uy) {
    const float a = 6.2831853f * x / kWidth, b = 6.2831853f * y / kHeight;
    rho = 1.f;
    ux = 0.04f * cosf(4.f * a) * sinf(4.f * b);
    uy = -0.04f * sinf(4.f * a) * cosf(4.f * b);
}

__global__ void start(float* f) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x;
    if (cell >= kCells) return;
    float rho, ux, uy;
    initial_flow(cell % kWidth, cell / kWidth, rho, ux, uy);
#pragma unroll
    for (int q = 0; q < kDirs; ++q) f[slot(q, cell)] = equilibrium(q, rho, ux, uy);
}

__global__ void __launch_bounds__(256) advance(const float* __restrict__ from, float* __restrict__ to) {
    const int cell = blockIdx.x * 256 + threadIdx.x;
    const int x = cell % kWidth, y = cell / kWidth;
    const int ex[kDirs] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    const int ey[kDirs] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    float f[kDirs], rho = 0.f, ux = 0.f, uy = 0.f;
#pragma unroll
    for (int q = 0; q < kDirs; ++q) {
        const int sx = (x - ex[q] + kWidth) % kWidth, sy = (y - ey[q] + kHeight) % kHeight;
        f[q] = from[slot(q, sy * kWidth + sx)];
        rho += f[q];
        ux += ex[q] * f[q];
        uy += ey[q] * f[q];
    }
    const float inv = 1.f / rho;
    ux *= inv;
    uy *= inv;
#pragma unroll
    for (int q = 0; q < kDirs; ++q) to[slot(q, cell)] = f[q] + kOmega * (equilibrium(q, rho, ux, uy) - f[q]);
}

__global__ void add_mass(const float* f, double* mass) {
    double sum = 0.0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < (size_t)kCells * kDirs; i += (size_t)gridDim.x * blockDim.x)
        sum += f[i];
    for (int d = 16; d; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (threadIdx.x % 32 == 0) atomicAdd(mass, sum);
}

// Value of one population after `steps` steps, by recursion.
static void host_cell(int x, int y, int steps, double out[kDirs]) {
    const int ex[kDirs] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
    const int ey[kDirs] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
    x = (x + kWidth) % kWidth;
    y = (y + kHeight) % kHeight;
    if (steps == 0) {
        float rho, ux, uy;
        initial_flow(x, y, rho, ux, uy);
        for (int q = 0; q < kDirs; ++q) out[q] = equilibrium(q, rho, ux, uy);
        return;
    }
    double rho = 0, ux = 0, uy = 0;
    for (int q = 0; q < kDirs; ++q) {
        double near[kDirs];
        host_cell(x - ex[q], y - ey[q], steps - 1, near);
        out[q] = near[q];
        rho += out[q];
        ux += ex[q] * out[q];
        uy += ey[q] * out[q];
    }
    for (int q = 0; q < kDirs; ++q)
        out[q] += kOmega * (equilibrium(q, (float)rho, (float)(ux / rho), (float)(uy / rho)) - out[q]);
}

int main() {
    const size_t bytes = (size_t)kCells * kDirs * sizeof(float);
    float *a, *b;
    double* d_mass;
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMalloc(&d_mass, sizeof(double)));
    start<<<kCells / 256, 256>>>(a);
    advance<<<kCells / 256, 256>>>(a, b);
    advance<<<kCells / 256, 256>>>(b, a);
    CHECK(cudaDeviceSynchronize());

    bool ok = true;
    std::vector<float> host((size_t)kCells * kDirs);
    CHECK(cudaMemcpy(host.data(), a, bytes, cudaMemcpyDeviceToHost));
    for (int cell = 5; cell < kCells; cell += 40009) {
        double want[kDirs];
        host_cell(cell % kWidth, cell / kWidth, 2, want);
        for (int q = 0; q < kDirs; ++q)
            if (!(fabs(host[slot(q, cell)] - want[q]) < 2e-6)) ok = false;
    }

    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0));
    CHECK(cudaEventCreate(&t1));
    const int pairs = 100;
    CHECK(cudaEventRecord(t0));
    for (int i = 0; i < pairs; ++i) {
        advance<<<kCells / 256, 256>>>(a, b);
        advance<<<kCells / 256, 256>>>(b, a);
    }
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms = 0.f;
    CHECK(cudaEventElapsedTime(&ms, t0, t1));

    double mass = 0.0;
    CHECK(cudaMemset(d_mass, 0, sizeof(double)));
    add_mass<<<528, 256>>>(a, d_mass);
    CHECK(cudaMemcpy(&mass, d_mass, sizeof(double), cudaMemcpyDeviceToHost));
    if (!(fabs(mass / kCells - 1.0) < 1e-3)) ok = false;
    printf("mean density: %.6f\n", mass / kCells);
    printf("us_per_iteration: %.3f\n", ms * 1e3 / (2 * pairs));
    return ok ? 0 : 1;
}
