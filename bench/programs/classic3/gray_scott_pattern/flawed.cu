// SPDX-License-Identifier: Apache-2.0. Gray-Scott reaction-diffusion on a periodic sheet, explicit steps.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { \
    std::printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(r)); std::exit(1); } } while (0)

constexpr int kN = 4096;
constexpr int kMask = kN - 1;
constexpr float kDu = 0.16f, kDv = 0.08f, kFeed = 0.035f, kKill = 0.065f;

struct Sheet {
    float *u, *v;            // present concentrations
    float *u_next, *v_next;
};

__global__ void seed_sheet(float* u, float* v)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const uint32_t h = (uint32_t(x >> 4) * 73856093u) ^ (uint32_t(y >> 4) * 19349663u);
    const bool spot = (h >> 5) % 7 == 0;
    u[y * kN + x] = spot ? 0.5f : 1.0f;
    v[y * kN + x] = spot ? 0.25f + 0.001f * (h % 50) : 0.0f;
}

__global__ void gray_scott_step(const float* __restrict__ u, const float* __restrict__ v,
                                float* __restrict__ u_next, float* __restrict__ v_next)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const int c = y * kN + x;
    const int w = y * kN + ((x - 1) & kMask), e = y * kN + ((x + 1) & kMask);
    const int n = ((y - 1) & kMask) * kN + x, s = ((y + 1) & kMask) * kN + x;
    const float uc = u[c], vc = v[c];
    const float lap_u = u[w] + u[e] + u[n] + u[s] - 4.0f * uc;
    const float lap_v = v[w] + v[e] + v[n] + v[s] - 4.0f * vc;
    const float uvv = uc * vc * vc;
    u_next[c] = uc + kDu * lap_u - uvv + kFeed * (1.0f - uc);
    v_next[c] = vc + kDv * lap_v + uvv - (kFeed + kKill) * vc;
}

static void advance(Sheet& s)
{
    const dim3 block(64, 4), grid(kN / 64, kN / 4);
    const size_t bytes = size_t(kN) * kN * sizeof(float);
    gray_scott_step<<<grid, block>>>(s.u, s.v, s.u_next, s.v_next);
    CHECK(cudaMemcpyAsync(s.u, s.u_next, bytes, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyAsync(s.v, s.v_next, bytes, cudaMemcpyDeviceToDevice));
}

// rows y-1, y, y+1 of a field
static std::vector<float> rows(const float* field, int y)
{
    std::vector<float> band(3 * kN);
    for (int k = 0; k < 3; ++k)
        CHECK(cudaMemcpy(band.data() + k * kN, field + size_t((y + k - 1) & kMask) * kN,
                         kN * sizeof(float), cudaMemcpyDeviceToHost));
    return band;
}

int main()
{
    const size_t bytes = size_t(kN) * kN * sizeof(float);
    Sheet s;
    CHECK(cudaMalloc(&s.u, bytes)); CHECK(cudaMalloc(&s.v, bytes));
    CHECK(cudaMalloc(&s.u_next, bytes)); CHECK(cudaMalloc(&s.v_next, bytes));
    seed_sheet<<<dim3(kN / 64, kN / 4), dim3(64, 4)>>>(s.u, s.v);
    CHECK(cudaGetLastError());
    for (int i = 0; i < 2; ++i) advance(s);
    CHECK(cudaDeviceSynchronize());

    const int iterations = 50;
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0)); CHECK(cudaEventCreate(&t1));
    CHECK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) advance(s);
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    CHECK(cudaGetLastError());
    float ms; CHECK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.1f\n", ms * 1000.0f / iterations);

    // one more step, a few rows of it repeated on the host
    const int sample[4] = {0, 777, 2050, kN - 1};
    std::vector<std::vector<float>> u0, v0;
    for (int y : sample) { u0.push_back(rows(s.u, y)); v0.push_back(rows(s.v, y)); }
    advance(s);
    CHECK(cudaDeviceSynchronize());
    double total = 0.0;
    for (int k = 0; k < 4; ++k) {
        const std::vector<float> u1 = rows(s.u, sample[k]), v1 = rows(s.v, sample[k]);
        const float *u = u0[k].data() + kN, *v = v0[k].data() + kN;
        for (int x = 0; x < kN; ++x) {
            const int w = (x - 1) & kMask, e = (x + 1) & kMask;
            const double lu = double(u[w]) + u[e] + u[x - kN] + u[x + kN] - 4.0 * u[x];
            const double lv = double(v[w]) + v[e] + v[x - kN] + v[x + kN] - 4.0 * v[x];
            const double uvv = double(u[x]) * v[x] * v[x];
            const double wu = u[x] + kDu * lu - uvv + kFeed * (1.0 - u[x]);
            const double wv = v[x] + kDv * lv + uvv - double(kFeed + kKill) * v[x];
            if (!(std::fabs(u1[kN + x] - wu) < 1e-5 && std::fabs(v1[kN + x] - wv) < 1e-5)) {
                std::printf("row %d column %d: (%g, %g), expected (%g, %g)\n", sample[k], x,
                            u1[kN + x], v1[kN + x], wu, wv);
                return 1;
            }
            total += wv;
        }
    }
    if (!(total > 0.0)) { std::printf("the pattern has died out\n"); return 1; }
    return 0;
}
