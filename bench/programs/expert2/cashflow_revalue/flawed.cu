// SPDX-License-Identifier: Apache-2.0
// Revaluation of a cash-flow ledger against a new discount curve.
// A ledger row names its trade and the day (offset from today) on which it settles. The
// daily curve of the next 40 years (discount factor and its sensitivity) stays in shared
// memory; trade records are looked up in the trade master. Blocks are persistent, one
// per SM, since the curve takes more than half of an SM's shared memory.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int DAYS = 14610;                 // 40 years
constexpr int TRADES = 1 << 22;
constexpr int ROWS = 1 << 24;
constexpr int THREADS = 256;
constexpr int BATCH = 8;                    // rows per thread and pass
constexpr int CURVE_BYTES = DAYS * sizeof(float2);

struct __align__(8) Flow { int trade; int day; };
struct __align__(16) Trade { float fx; float spread; float fee; float weight; };

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__host__ __device__ inline float unit(unsigned x) { return (mix(x) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline Trade make_trade(unsigned t) {
    Trade r;
    r.fx = 0.5f + unit(4 * t);
    r.spread = 0.02f * unit(4 * t + 1);
    r.fee = 0.25f * unit(4 * t + 2);
    r.weight = 1.0f + unit(4 * t + 3);
    return r;
}
__host__ __device__ inline Flow make_flow(unsigned i) {
    Flow f;
    f.trade = (int)(mix(i ^ 0x51ed270bu) & (TRADES - 1));
    f.day = (int)(mix(i ^ 0x2545f491u) % DAYS);
    return f;
}
__host__ __device__ inline float make_amount(unsigned i) { return 100.0f + 900.0f * unit(i ^ 0x68bc21ebu); }

__global__ void fill_ledger(Flow* flows, float* amounts, Trade* trades) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ROWS) { flows[i] = make_flow(i); amounts[i] = make_amount(i); }
    if (i < TRADES) trades[i] = make_trade(i);
}

__host__ __device__ inline float present_value(float amount, const Trade& t, float df, float sens) {
    return t.weight * (amount * t.fx * (df - t.spread * sens) - t.fee);
}

__global__ void __launch_bounds__(THREADS)
revalue(const Flow* flows, const float* amounts,
        const Trade* trades, const float2* curve, float* values) {
    extern __shared__ float2 daily[];
    for (int d = threadIdx.x; d < DAYS; d += THREADS) daily[d] = curve[d];
    __syncthreads();

    constexpr int PASS = THREADS * BATCH;
    for (int base = blockIdx.x * PASS; base < ROWS; base += gridDim.x * PASS) {
        const int row = base + threadIdx.x;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const Flow f = flows[row + j * THREADS];
            const float amount = amounts[row + j * THREADS];
            const Trade t = trades[f.trade];
            const float2 c = daily[f.day];
            values[row + j * THREADS] = present_value(amount, t, c.x, c.y);
        }
    }
}

int main() {
    const int iterations = 40;
    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));

    std::vector<float2> curve(DAYS);
    for (int d = 0; d < DAYS; ++d) {
        const double years = d / 365.25, rate = 0.02 + 0.01 * (1.0 - std::exp(-years / 5.0));
        const double df = std::exp(-rate * years);
        curve[d] = make_float2((float)df, (float)(df * years));
    }

    Flow* flows; float *amounts, *values; Trade* trades; float2* d_curve;
    CK(cudaMalloc(&flows, (size_t)ROWS * sizeof(Flow)));
    CK(cudaMalloc(&amounts, (size_t)ROWS * sizeof(float)));
    CK(cudaMalloc(&values, (size_t)ROWS * sizeof(float)));
    CK(cudaMalloc(&trades, (size_t)TRADES * sizeof(Trade)));
    CK(cudaMalloc(&d_curve, CURVE_BYTES));
    CK(cudaMemcpy(d_curve, curve.data(), CURVE_BYTES, cudaMemcpyHostToDevice));
    CK(cudaMemset(values, 0, (size_t)ROWS * sizeof(float)));
    fill_ledger<<<ROWS / 256, 256>>>(flows, amounts, trades);
    CK(cudaGetLastError());
    CK(cudaFuncSetAttribute(revalue, cudaFuncAttributeMaxDynamicSharedMemorySize, CURVE_BYTES));

    revalue<<<sms, THREADS, CURVE_BYTES>>>(flows, amounts, trades, d_curve, values);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i)
        revalue<<<sms, THREADS, CURVE_BYTES>>>(flows, amounts, trades, d_curve, values);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> got(ROWS);
    CK(cudaMemcpy(got.data(), values, (size_t)ROWS * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (unsigned i = 0; i < ROWS; i += 1021) {
        const Flow f = make_flow(i);
        const Trade t = make_trade((unsigned)f.trade);
        const double want = t.weight * ((double)make_amount(i) * t.fx *
                            (curve[f.day].x - (double)t.spread * curve[f.day].y) - t.fee);
        if (!(std::fabs(got[i] - want) <= 1e-3 * std::fabs(want) + 1e-2)) ++bad;
    }
    std::printf("rows out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
