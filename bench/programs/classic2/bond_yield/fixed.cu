// SPDX-License-Identifier: Apache-2.0
// Yield desk: each bond of the book carries a weekly cash-flow schedule; dealers quote prices for it and the desk wants the yield behind every quote.  One block serves one
// bond, one thread one quote; the yield is found by bisection on the present value.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define TRY(c)                                                                   \
    do {                                                                         \
        cudaError_t e = (c);                                                     \
        if (e != cudaSuccess) {                                                  \
            fprintf(stderr, "cuda: %s (%d)\n", cudaGetErrorString(e), __LINE__); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr int kBonds = 132;
constexpr int kQuotes = 128;           // per bond
constexpr int kWeeks = 1560;           // thirty years, a multiple of four
constexpr int kBisections = 40;
constexpr int kRuns = 50;
constexpr float kYieldLow = 0.0f;
constexpr float kYieldHigh = 0.25f;

static uint32_t lcg(uint32_t& s) {
    s = s * 1664525u + 1013904223u;
    return s >> 8;
}

static float uniform(uint32_t& s) { return (float)lcg(s) * (1.0f / 16777216.0f); }

struct Book {
    std::vector<float> flows;   // [bond][week], payment at the end of week + 1
    std::vector<float> prices;  // [bond][quote]
};

static double presentValueRef(const float* flow, double yield) {
    const double d = 1.0 / (1.0 + yield / 52.0);
    double pv = 0.0, df = 1.0;
    for (int w = 0; w < kWeeks; ++w) {
        df *= d;
        pv += flow[w] * df;
    }
    return pv;
}

static Book makeBook() {
    Book b;
    b.flows.resize((size_t)kBonds * kWeeks);
    b.prices.resize((size_t)kBonds * kQuotes);
    uint32_t seed = 2024u;
    for (int i = 0; i < kBonds; ++i) {
        float* f = &b.flows[(size_t)i * kWeeks];
        const float coupon = (0.02f + 0.05f * uniform(seed)) * 100.0f / 52.0f;
        for (int w = 0; w < kWeeks; ++w) f[w] = coupon * (0.9f + 0.2f * uniform(seed));
        f[kWeeks - 1] += 100.0f;
        for (int q = 0; q < kQuotes; ++q) {
            const double y = 0.01 + 0.12 * uniform(seed);
            b.prices[(size_t)i * kQuotes + q] = (float)presentValueRef(f, y);
        }
    }
    return b;
}

// Present value of the schedule at weekly discount factor d.
__device__ inline float presentValue(const float4* flow, float d) {
    const float d2 = d * d, d4 = d2 * d2;
    float p0 = 0.0f, p1 = 0.0f, p2 = 0.0f, p3 = 0.0f;
#pragma unroll 15
    for (int i = kWeeks / 4 - 1; i >= 0; --i) {
        const float4 c = flow[i];
        p3 = fmaf(p3, d4, c.w);
        p2 = fmaf(p2, d4, c.z);
        p1 = fmaf(p1, d4, c.y);
        p0 = fmaf(p0, d4, c.x);
    }
    const float pv = fmaf(fmaf(d, p3, p2), d2, fmaf(d, p1, p0));
    return pv * d;
}

__global__ void __launch_bounds__(kQuotes, 1)
solveYields(const float4* __restrict__ flows, const float* __restrict__ prices,
            float* __restrict__ yields) {
    __shared__ float4 flow[kWeeks / 4];
    const int bond = blockIdx.x;
    for (int i = threadIdx.x; i < kWeeks / 4; i += kQuotes)
        flow[i] = flows[bond * (kWeeks / 4) + i];
    __syncthreads();

    const int quote = bond * kQuotes + threadIdx.x;
    const float price = prices[quote];
    float lo = kYieldLow, hi = kYieldHigh;
    for (int k = 0; k < kBisections; ++k) {
        const float mid = 0.5f * (lo + hi);
        const float d = 1.0f / (1.0f + mid * (1.0f / 52.0f));
        if (presentValue(flow, d) > price)
            lo = mid;
        else
            hi = mid;
    }
    yields[quote] = 0.5f * (lo + hi);
}

static double yieldRef(const float* flow, double price) {
    double lo = kYieldLow, hi = kYieldHigh;
    for (int k = 0; k < 34; ++k) {
        const double mid = 0.5 * (lo + hi);
        if (presentValueRef(flow, mid) > price)
            lo = mid;
        else
            hi = mid;
    }
    return 0.5 * (lo + hi);
}

int main() {
    const Book book = makeBook();
    float *flows, *prices, *yields;
    TRY(cudaMalloc(&flows, book.flows.size() * sizeof(float)));
    TRY(cudaMalloc(&prices, book.prices.size() * sizeof(float)));
    TRY(cudaMalloc(&yields, book.prices.size() * sizeof(float)));
    TRY(cudaMemcpy(flows, book.flows.data(), book.flows.size() * sizeof(float),
                   cudaMemcpyHostToDevice));
    TRY(cudaMemcpy(prices, book.prices.data(), book.prices.size() * sizeof(float),
                   cudaMemcpyHostToDevice));

    const float4* flows4 = reinterpret_cast<const float4*>(flows);
    solveYields<<<kBonds, kQuotes>>>(flows4, prices, yields);
    TRY(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    TRY(cudaEventCreate(&t0));
    TRY(cudaEventCreate(&t1));
    TRY(cudaEventRecord(t0));
    for (int r = 0; r < kRuns; ++r) solveYields<<<kBonds, kQuotes>>>(flows4, prices, yields);
    TRY(cudaEventRecord(t1));
    TRY(cudaEventSynchronize(t1));
    TRY(cudaGetLastError());
    float ms = 0.0f;
    TRY(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.3f\n", ms * 1000.0f / kRuns);

    std::vector<float> got(book.prices.size());
    TRY(cudaMemcpy(got.data(), yields, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (size_t q = 3; q < got.size(); q += 8) {
        const float* f = &book.flows[q / kQuotes * kWeeks];
        if (!(std::fabs(got[q] - yieldRef(f, book.prices[q])) < 1e-4)) ++bad;
    }
    if (bad) {
        printf("yields off by more than a basis point: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
