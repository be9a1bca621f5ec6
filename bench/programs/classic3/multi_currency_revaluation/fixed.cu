// SPDX-License-Identifier: Apache-2.0. Overnight revaluation of four currency books under yield-curve scenarios.
// One kernel per currency discounts the netted daily cash flows of its book; a last
// kernel converts to the home currency. The night's work is replayed as a CUDA graph.
#include <cstdio>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int BOOKS = 4;
constexpr int SCENARIOS = 8192;
constexpr int FLOWS = 7560;           // business days in thirty years
constexpr int THREADS = 256;

struct Curve { float level, slope, bend, fx; };

static float unit(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    x ^= x >> 16;
    return (x >> 8) * (1.0f / 16777216.0f);
}

// flows[k] = (time in years, amount); rate(t) = level + slope t + bend t^2.
__global__ void __launch_bounds__(THREADS)
revalue_book(const float2* __restrict__ flows, const Curve* __restrict__ curves,
             float* __restrict__ value) {
    const int s = blockIdx.x * THREADS + threadIdx.x;
    const Curve c = curves[s];
    float pv = 0.0f;
#pragma unroll 8
    for (int k = 0; k < FLOWS; ++k) {
        const float2 f = __ldg(&flows[k]);
        const float rate = fmaf(fmaf(c.bend, f.x, c.slope), f.x, c.level);
        pv = fmaf(f.y, __expf(-rate * f.x), pv);
    }
    value[s] = pv;
}

__global__ void convert_total(const float* __restrict__ value, const Curve* __restrict__ curves,
                              float* __restrict__ total) {
    const int s = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int b = 0; b < BOOKS; ++b)
        sum = fmaf(curves[b * SCENARIOS + s].fx, value[b * SCENARIOS + s], sum);
    total[s] = sum;
}

int main() {
    std::vector<float2> flows((size_t)BOOKS * FLOWS);
    std::vector<Curve> curves((size_t)BOOKS * SCENARIOS);
    for (int b = 0; b < BOOKS; ++b) {
        for (int k = 0; k < FLOWS; ++k)
            flows[b * FLOWS + k] = make_float2((k + 1) / 252.0f, 2.0f * unit(b * 7919 + k) - 0.6f);
        for (int s = 0; s < SCENARIOS; ++s) {
            const unsigned h = (b * SCENARIOS + s) * 4u + 1000003u;
            curves[b * SCENARIOS + s] = {0.01f + 0.04f * unit(h), 0.004f * unit(h + 1) - 0.002f,
                                         0.0002f * unit(h + 2), 0.5f + unit(h + 3)};
        }
    }
    float2* d_flows;
    Curve* d_curves;
    float *value, *total;
    CK(cudaMalloc(&d_flows, flows.size() * sizeof(float2)));
    CK(cudaMalloc(&d_curves, curves.size() * sizeof(Curve)));
    CK(cudaMalloc(&value, BOOKS * SCENARIOS * sizeof(float)));
    CK(cudaMalloc(&total, SCENARIOS * sizeof(float)));
    CK(cudaMemcpy(d_flows, flows.data(), flows.size() * sizeof(float2), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_curves, curves.data(), curves.size() * sizeof(Curve), cudaMemcpyHostToDevice));

    cudaStream_t night, desk[BOOKS];
    cudaEvent_t opened, closed[BOOKS];
    CK(cudaStreamCreateWithFlags(&night, cudaStreamNonBlocking));
    CK(cudaEventCreateWithFlags(&opened, cudaEventDisableTiming));
    for (int b = 0; b < BOOKS; ++b) {
        CK(cudaStreamCreateWithFlags(&desk[b], cudaStreamNonBlocking));
        CK(cudaEventCreateWithFlags(&closed[b], cudaEventDisableTiming));
    }

    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CK(cudaStreamBeginCapture(night, cudaStreamCaptureModeGlobal));
    CK(cudaEventRecord(opened, night));
    for (int b = 0; b < BOOKS; ++b) {
        cudaStream_t lane = desk[b];
        CK(cudaStreamWaitEvent(lane, opened, 0));
        revalue_book<<<SCENARIOS / THREADS, THREADS, 0, lane>>>(
            d_flows + b * FLOWS, d_curves + b * SCENARIOS, value + b * SCENARIOS);
        CK(cudaEventRecord(closed[b], lane));
    }
    for (int b = 0; b < BOOKS; ++b) CK(cudaStreamWaitEvent(night, closed[b], 0));
    convert_total<<<SCENARIOS / THREADS, THREADS, 0, night>>>(value, d_curves, total);
    CK(cudaStreamEndCapture(night, &graph));
    CK(cudaGraphInstantiate(&exec, graph, 0));

    const int iters = 40;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0, night));
        CK(cudaGraphLaunch(exec, night));
    }
    CK(cudaEventRecord(t1, night));
    CK(cudaStreamSynchronize(night));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<float> got(SCENARIOS);
    CK(cudaMemcpy(got.data(), total, SCENARIOS * sizeof(float), cudaMemcpyDeviceToHost));
    for (int s = 0; s < SCENARIOS; s += 61) {
        double sum = 0.0, gross = 0.0;
        for (int b = 0; b < BOOKS; ++b) {
            const Curve c = curves[b * SCENARIOS + s];
            for (int k = 0; k < FLOWS; ++k) {
                const double t = flows[b * FLOWS + k].x;
                const double pv = c.fx * (double)flows[b * FLOWS + k].y * std::exp(-(c.level + c.slope * t + c.bend * t * t) * t);
                sum += pv;
                gross += std::fabs(pv);
            }
        }
        if (!(std::fabs(got[s] - sum) < 2e-5 * gross)) { printf("scenario %d: %f vs %f\n", s, got[s], sum); return 1; }
    }
    return 0;
}
