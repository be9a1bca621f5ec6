// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients for the five-point Poisson problem on a rectangle with zero boundary.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_DO(call)                                                                      \
    do {                                                                                   \
        cudaError_t code = (call);                                                         \
        if (code != cudaSuccess) {                                                         \
            std::fprintf(stderr, "poisson_cg:%d %s\n", __LINE__, cudaGetErrorString(code)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

constexpr int kNx = 1024, kNy = 512, kN = kNx * kNy;
constexpr int kThreads = 256;
constexpr int kGrid = 528;
constexpr int kMaxSteps = 160;
constexpr double kTolerance = 1e-14;

__device__ void add_to(double* target, double value) {
    __shared__ double warp_sum[kThreads / 32];
    for (int d = 16; d; d >>= 1) value += __shfl_down_sync(0xffffffffu, value, d);
    if (threadIdx.x % 32 == 0) warp_sum[threadIdx.x / 32] = value;
    __syncthreads();
    if (threadIdx.x < kThreads / 32) {
        value = warp_sum[threadIdx.x];
        for (int d = kThreads / 64; d; d >>= 1) value += __shfl_down_sync(0xffu, value, d);
        if (threadIdx.x == 0) atomicAdd(target, value);
    }
}

__global__ void __launch_bounds__(kThreads)
apply_laplacian(const float* __restrict__ p, float* __restrict__ ap, double* p_ap) {
    float dot = 0.f;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kN; i += kGrid * kThreads) {
        const int x = i % kNx, y = i / kNx;
        const float c = p[i];
        const float v = 4.f * c - (x > 0 ? p[i - 1] : 0.f) - (x < kNx - 1 ? p[i + 1] : 0.f) -
                        (y > 0 ? p[i - kNx] : 0.f) - (y < kNy - 1 ? p[i + kNx] : 0.f);
        ap[i] = v;
        dot += c * v;
    }
    add_to(p_ap, dot);
}

__global__ void __launch_bounds__(kThreads)
update_solution(float* __restrict__ x, float* __restrict__ r, const float* __restrict__ p, const float* __restrict__ ap,
                const double* rr, const double* p_ap, double* rr_next) {
    const float alpha = (float)(*rr / *p_ap);
    float dot = 0.f;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kN; i += kGrid * kThreads) {
        x[i] = fmaf(alpha, p[i], x[i]);
        const float v = fmaf(-alpha, ap[i], r[i]);
        r[i] = v;
        dot += v * v;
    }
    add_to(rr_next, dot);
}

__global__ void __launch_bounds__(kThreads)
update_direction(float* __restrict__ p, const float* __restrict__ r, const double* rr_next, const double* rr) {
    const float beta = (float)(*rr_next / *rr);
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kN; i += kGrid * kThreads) p[i] = fmaf(beta, p[i], r[i]);
}

__global__ void __launch_bounds__(kThreads)
begin(float* __restrict__ x, float* __restrict__ r, float* __restrict__ p, const float* __restrict__ rhs, double* rr) {
    float dot = 0.f;
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kN; i += kGrid * kThreads) {
        const float b = rhs[i];
        x[i] = 0.f;
        r[i] = b;
        p[i] = b;
        dot += b * b;
    }
    add_to(rr, dot);
}

struct Solver {
    float *x, *r, *p, *ap, *rhs;
    double *rr, *p_ap;   // one value per step

    Solver() {
        for (float** v : {&x, &r, &p, &ap, &rhs}) CUDA_DO(cudaMalloc(v, sizeof(float) * kN));
        CUDA_DO(cudaMalloc(&rr, sizeof(double) * (kMaxSteps + 1)));
        CUDA_DO(cudaMalloc(&p_ap, sizeof(double) * (kMaxSteps + 1)));
    }

    int solve() {
        CUDA_DO(cudaMemsetAsync(rr, 0, sizeof(double) * (kMaxSteps + 1)));
        CUDA_DO(cudaMemsetAsync(p_ap, 0, sizeof(double) * (kMaxSteps + 1)));
        begin<<<kGrid, kThreads>>>(x, r, p, rhs, rr);
        int step = 0;
        while (step < kMaxSteps) {
            apply_laplacian<<<kGrid, kThreads>>>(p, ap, p_ap + step);
            update_solution<<<kGrid, kThreads>>>(x, r, p, ap, rr + step, p_ap + step, rr + step + 1);
            update_direction<<<kGrid, kThreads>>>(p, r, rr + step + 1, rr + step);
            ++step;
            double residual;
            CUDA_DO(cudaMemcpy(&residual, rr + step, sizeof(double), cudaMemcpyDeviceToHost));
            if (residual < kTolerance) break;
        }
        return step;
    }
};

int main() {
    std::vector<float> rhs(kN), x(kN), r(kN);
    for (int i = 0; i < kN; ++i) {
        const int cx = i % kNx - kNx / 3, cy = i / kNx - kNy / 2;
        rhs[i] = std::exp(-(cx * cx + cy * cy) / 800.f) - (i % 7 == 0 ? 0.01f : 0.f);
    }
    Solver s;
    CUDA_DO(cudaMemcpy(s.rhs, rhs.data(), sizeof(float) * kN, cudaMemcpyHostToDevice));
    for (int i = 0; i < 3; ++i) s.solve();

    cudaEvent_t t0, t1;
    CUDA_DO(cudaEventCreate(&t0));
    CUDA_DO(cudaEventCreate(&t1));
    const int solves = 50;
    int steps = 0;
    CUDA_DO(cudaEventRecord(t0));
    for (int i = 0; i < solves; ++i) steps = s.solve();
    CUDA_DO(cudaEventRecord(t1));
    CUDA_DO(cudaEventSynchronize(t1));
    CUDA_DO(cudaGetLastError());
    float ms;
    CUDA_DO(cudaEventElapsedTime(&ms, t0, t1));

    CUDA_DO(cudaMemcpy(x.data(), s.x, sizeof(float) * kN, cudaMemcpyDeviceToHost));
    CUDA_DO(cudaMemcpy(r.data(), s.r, sizeof(float) * kN, cudaMemcpyDeviceToHost));
    bool ok = true;
    double worst = 0.0, largest = 0.0;
    for (int i = 0; i < kN; ++i) largest = std::fmax(largest, std::fabs(x[i]));
    for (int i = 0; i < kN; i += 7) {   // the residual of the recurrence against the true one
        const int cx = i % kNx, cy = i / kNx;
        double v = rhs[i] - 4.0 * x[i];
        if (cx > 0) v += x[i - 1];
        if (cx < kNx - 1) v += x[i + 1];
        if (cy > 0) v += x[i - kNx];
        if (cy < kNy - 1) v += x[i + kNx];
        worst = std::fmax(worst, std::fabs(v - r[i]));
    }
    if (!(worst < 1e-4 * largest) || !(largest > 1.0)) ok = false;
    std::printf("steps: %d, largest: %.3f, drift: %.3g\n", steps, largest, worst);
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / solves);
    return ok ? 0 : 1;
}
