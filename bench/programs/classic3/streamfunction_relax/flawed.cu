// SPDX-License-Identifier: Apache-2.0. Streamfunction from relative vorticity on a mid-latitude beta-plane channel:
// damped Jacobi sweeps on the 5-point Laplacian, periodic in x and with walls in y,
// until the largest update falls below a tolerance.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int NX = 2048, NY = 1536;
constexpr int MAX_SWEEPS = 40;
constexpr int ROWS = 8;                 // rows per thread
constexpr float OMEGA = 0.9f;
constexpr float TOLERANCE = 1e-5f;

__global__ void make_vorticity(float* zeta)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = i % NX, y = i / NX;
    if (y >= NY) return;
    zeta[i] = sinf(0.031f * x) * cosf(0.047f * y) + 0.3f * sinf(0.11f * x + 0.07f * y);
}

__global__ void __launch_bounds__(256) sweep(const float* __restrict__ psi,
                                             const float* __restrict__ zeta,
                                             float* __restrict__ next, unsigned* change)
{
    const int x = blockIdx.x * 256 + threadIdx.x;
    const int xl = x == 0 ? NX - 1 : x - 1, xr = x == NX - 1 ? 0 : x + 1;
    const int y0 = blockIdx.y * ROWS;

    float biggest = 0.0f;
    float below = y0 > 0 ? psi[(y0 - 1) * NX + x] : 0.0f;
    float here = psi[y0 * NX + x];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = (y0 + r) * NX;
        const float above = y0 + r < NY - 1 ? psi[row + NX + x] : 0.0f;
        const float jac = 0.25f * (psi[row + xl] + psi[row + xr] + below + above - zeta[row + x]);
        const float step = OMEGA * (jac - here);
        next[row + x] = here + step;
        biggest = fmaxf(biggest, fabsf(step));
        below = here;
        here = above;
    }
    const unsigned m = __reduce_max_sync(0xffffffffu, __float_as_uint(biggest));
    __shared__ unsigned warp_max[8];
    if ((threadIdx.x & 31) == 0) warp_max[threadIdx.x >> 5] = m;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned b = warp_max[0];
        for (int w = 1; w < 8; ++w) b = max(b, warp_max[w]);
        atomicMax(change, b);
    }
}

// One cell per thread, for checking.
__global__ void plain_sweep(const float* psi, const float* zeta, float* next)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = i % NX, y = i / NX;
    if (y >= NY) return;
    float w = psi[y * NX + (x + NX - 1) % NX], e = psi[y * NX + (x + 1) % NX];
    float s = y > 0 ? psi[i - NX] : 0.0f, n = y < NY - 1 ? psi[i + NX] : 0.0f;
    next[i] = psi[i] + OMEGA * (0.25f * (w + e + s + n - zeta[i]) - psi[i]);
}

static float* solve(float* a, float* b, const float* zeta, unsigned* change)
{
    const dim3 grid(NX / 256, NY / ROWS);
    CK(cudaMemsetAsync(a, 0, sizeof(float) * NX * NY));
    CK(cudaMemsetAsync(change, 0, sizeof(unsigned) * MAX_SWEEPS));
    for (int s = 0; s < MAX_SWEEPS; ++s) {
        sweep<<<grid, 256>>>(a, zeta, b, change + s);
        float* t = a; a = b; b = t;
        float biggest;
        CK(cudaMemcpy(&biggest, change + s, sizeof(float), cudaMemcpyDeviceToHost));
        if (biggest < TOLERANCE) break;
    }
    return a;
}

int main()
{
    const size_t bytes = sizeof(float) * NX * NY;
    float *a, *b, *zeta;
    unsigned* change;
    CK(cudaMalloc(&a, bytes));
    CK(cudaMalloc(&b, bytes));
    CK(cudaMalloc(&zeta, bytes));
    CK(cudaMalloc(&change, sizeof(unsigned) * MAX_SWEEPS));
    make_vorticity<<<NX * NY / 256, 256>>>(zeta);

    float* psi = solve(a, b, zeta, change);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 20;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) psi = solve(a, b, zeta, change);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> got(NX * NY), ref(NX * NY);
    CK(cudaMemcpy(got.data(), psi, bytes, cudaMemcpyDeviceToHost));
    float *p = a, *q = b;
    CK(cudaMemset(p, 0, bytes));
    for (int s = 0; s < MAX_SWEEPS; ++s) {
        plain_sweep<<<NX * NY / 256, 256>>>(p, zeta, q);
        float* t = p; p = q; q = t;
    }
    CK(cudaMemcpy(ref.data(), p, bytes, cudaMemcpyDeviceToHost));
    for (int i = 0; i < NX * NY; ++i)
        if (!(std::fabs(got[i] - ref[i]) <= 1e-4f)) {
            printf("mismatch at %d: %f vs %f\n", i, got[i], ref[i]);
            return 1;
        }
    return 0;
}
