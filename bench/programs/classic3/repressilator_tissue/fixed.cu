// SPDX-License-Identifier: Apache-2.0. Sheet of cells, each with a three-gene repressilator and a shared-signal
// reporter.  Explicit Euler, the state of a cell stays in registers over all
// substeps of a call.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kCells = 1 << 20;
constexpr int kSubsteps = 48;
constexpr float kDt = 0.01f;

struct Rates {
    float alpha = 60.0f, leak = 0.06f, beta = 5.0f;
    float vmax = 4.0f, km = 2.5f;           // enzymatic removal of the proteins
    float ks0 = 0.8f, ks1 = 0.05f;          // reporter production and decay
    float k[3] = {1.0f / 1.1f, 1.0f / 0.9f, 1.0f / 1.3f};
};

// repression with Hill coefficient 4
__device__ __forceinline__ float hill(float x)
{
    const float x2 = x * x;
    return __fdividef(1.0f, 1.0f + x2 * x2);
}

__host__ __device__ inline float initial(int species, int cell)
{
    uint32_t h = uint32_t(cell) * 2654435761u + uint32_t(species) * 40503u;
    h ^= h >> 15; h *= 0x2c1b3c6du; h ^= h >> 13;
    return 0.2f + 4.0f * (h >> 8) * (1.0f / 16777216.0f);
}

__global__ void seed_cells(float* state)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    for (int s = 0; s < 7; ++s) state[size_t(s) * kCells + c] = initial(s, c);
}

__global__ void advance_cells(const float* __restrict__ in, float* __restrict__ out, Rates r)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    float m[3], p[3];
    for (int g = 0; g < 3; ++g) {
        m[g] = in[size_t(g) * kCells + c];
        p[g] = in[size_t(3 + g) * kCells + c];
    }
    float s = in[size_t(6) * kCells + c];

    for (int t = 0; t < kSubsteps; ++t) {
        float dm[3], dp[3];
#pragma unroll
        for (int g = 0; g < 3; ++g) {
            const float repressor = p[(g + 2) % 3] * r.k[g];
            dm[g] = r.alpha * hill(repressor) + r.leak - m[g];
            const float removal = __fdividef(r.vmax * p[g], r.km + p[g]);
            dp[g] = r.beta * (m[g] - p[g]) - removal;
        }
        const float ds = r.ks0 * (p[0] + p[1] + p[2]) - s * (r.ks1 + 0.01f * s);
#pragma unroll
        for (int g = 0; g < 3; ++g) {
            m[g] += kDt * dm[g];
            p[g] = fmaxf(p[g] + kDt * dp[g], 0.0f);
        }
        s += kDt * ds;
    }
    for (int g = 0; g < 3; ++g) {
        out[size_t(g) * kCells + c] = m[g];
        out[size_t(3 + g) * kCells + c] = p[g];
    }
    out[size_t(6) * kCells + c] = s;
}

int main()
{
    const size_t bytes = size_t(7) * kCells * sizeof(float);
    float *in, *out;
    CHECK(cudaMalloc(&in, bytes));
    CHECK(cudaMalloc(&out, bytes));
    seed_cells<<<kCells / 256, 256>>>(in);
    const Rates r;
    for (int i = 0; i < 2; ++i) advance_cells<<<kCells / 256, 256>>>(in, out, r);
    CHECK(cudaDeviceSynchronize());

    const int iterations = 40;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    CHECK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) advance_cells<<<kCells / 256, 256>>>(in, out, r);
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    std::vector<float> got(size_t(7) * kCells);
    CHECK(cudaMemcpy(got.data(), out, bytes, cudaMemcpyDeviceToHost));
    for (int k = 0; k < 500; ++k) {
        const int c = (k * 20963 + 11) % kCells;
        double y[7];
        for (int i = 0; i < 7; ++i) y[i] = initial(i, c);
        for (int t = 0; t < kSubsteps; ++t) {
            double d[7];
            for (int g = 0; g < 3; ++g) {
                const double x = y[3 + (g + 2) % 3] * r.k[g];
                d[g] = r.alpha / (1.0 + x * x * x * x) + r.leak - y[g];
                d[3 + g] = r.beta * (y[g] - y[3 + g]) - r.vmax * y[3 + g] / (r.km + y[3 + g]);
            }
            d[6] = r.ks0 * (y[3] + y[4] + y[5]) - y[6] * (r.ks1 + 0.01 * y[6]);
            for (int i = 0; i < 7; ++i) y[i] += kDt * d[i];
            for (int i = 3; i < 6; ++i) y[i] = std::fmax(y[i], 0.0);
        }
        for (int i = 0; i < 7; ++i) {
            const double have = got[size_t(i) * kCells + c];
            if (!(std::fabs(have - y[i]) <= 2e-3 * (1.0 + std::fabs(y[i])))) {
                std::printf("cell %d species %d: %g, expected %g\n", c, i, have, y[i]);
                return 1;
            }
        }
    }
    return 0;
}
