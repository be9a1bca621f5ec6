// SPDX-License-Identifier: Apache-2.0
// Catastrophe model: annual losses of several peril regions, simulated event by event. The regional simulations and their layer summaries are recorded once as a graph and
// replayed for each set of contract terms.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CU(call)                                                                 \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s (line %d)\n", cudaGetErrorString(e_), __LINE__); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kRegions = 8;
constexpr int kLanes = 1;              // streams that the recording is spread over
constexpr int kYearBlocks = 12;
constexpr int kThreads = 256;
constexpr int kYears = kYearBlocks * kThreads;
constexpr int kEvents = 400;           // events per simulated year

struct Terms {
    float mean_loss;
    float retention;
    float limit;
    uint32_t seed;
};

__host__ __device__ inline uint32_t next_state(uint32_t s) { return s * 747796405u + 2891336453u; }
__host__ __device__ inline uint32_t output_word(uint32_t s)
{
    const uint32_t w = ((s >> ((s >> 28) + 4u)) ^ s) * 277803737u;
    return (w >> 22) ^ w;
}
__host__ __device__ inline uint32_t first_state(uint32_t seed, uint32_t year)
{
    return output_word(seed * 0x9e3779b9u + year * 0x85ebca6bu + 12345u);
}

__host__ __device__ inline Terms terms_of(int region)
{
    Terms t;
    t.mean_loss = 1.0f + 0.25f * region;
    t.retention = 0.5f + 0.125f * region;
    t.limit = 4.0f + 0.5f * region;
    t.seed = 1000u + 17u * region;
    return t;
}

// Annual loss to the layer, one year per thread.
__global__ void __launch_bounds__(kThreads)
simulate_region(Terms t, float* __restrict__ annual)
{
    const int year = blockIdx.x * kThreads + threadIdx.x;
    uint32_t state = first_state(t.seed, year);
    float total = 0.0f;
    for (int e = 0; e < kEvents; ++e) {
        state = next_state(state);
        const float u = ((output_word(state) >> 8) + 0.5f) * (1.0f / 16777216.0f);
        const float loss = -t.mean_loss * logf(u);
        total += fminf(fmaxf(loss - t.retention, 0.0f), t.limit);
    }
    annual[year] = total;
}

// Mean and largest annual loss of a region, by a single block.
__global__ void __launch_bounds__(kThreads)
summarise_region(const float* __restrict__ annual, float* __restrict__ mean,
                 float* __restrict__ worst)
{
    __shared__ float sums[kThreads / 32], tops[kThreads / 32];
    float sum = 0.0f, top = 0.0f;
#pragma unroll
    for (int k = 0; k < kYearBlocks; ++k) {
        const float a = annual[k * kThreads + threadIdx.x];
        sum += a;
        top = fmaxf(top, a);
    }
    for (int d = 16; d > 0; d >>= 1) {
        sum += __shfl_down_sync(0xffffffffu, sum, d);
        top = fmaxf(top, __shfl_down_sync(0xffffffffu, top, d));
    }
    if (threadIdx.x % 32 == 0) {
        sums[threadIdx.x / 32] = sum;
        tops[threadIdx.x / 32] = top;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < kThreads / 32; ++w) {
            sum += sums[w];
            top = fmaxf(top, tops[w]);
        }
        *mean = sum / kYears;
        *worst = top;
    }
}

static cudaGraphExec_t record_model(cudaStream_t origin, float* annual, float* mean, float* worst)
{
    cudaStream_t lanes[kLanes];
    cudaEvent_t done[kLanes], ready;
    CU(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    for (int l = 0; l < kLanes; ++l) {
        CU(cudaStreamCreateWithFlags(&lanes[l], cudaStreamNonBlocking));
        CU(cudaEventCreateWithFlags(&done[l], cudaEventDisableTiming));
    }

    CU(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
    CU(cudaEventRecord(ready, origin));
    for (int l = 0; l < kLanes; ++l) CU(cudaStreamWaitEvent(lanes[l], ready, 0));
    for (int r = 0; r < kRegions; ++r) {
        cudaStream_t lane = lanes[r % kLanes];
        float* years = annual + (size_t)r * kYears;
        simulate_region<<<kYearBlocks, kThreads, 0, lane>>>(terms_of(r), years);
        summarise_region<<<1, kThreads, 0, lane>>>(years, mean + r, worst + r);
    }
    for (int l = 0; l < kLanes; ++l) {
        CU(cudaEventRecord(done[l], lanes[l]));
        CU(cudaStreamWaitEvent(origin, done[l], 0));
    }
    cudaGraph_t graph;
    CU(cudaStreamEndCapture(origin, &graph));
    cudaGraphExec_t exec;
    CU(cudaGraphInstantiate(&exec, graph, 0));
    CU(cudaGraphDestroy(graph));
    return exec;
}

static bool verify(const std::vector<float>& mean, const std::vector<float>& worst)
{
    for (int r = 0; r < kRegions; ++r) {
        const Terms t = terms_of(r);
        double sum = 0.0, top = 0.0;
        for (int y = 0; y < kYears; ++y) {
            uint32_t state = first_state(t.seed, y);
            double total = 0.0;
            for (int e = 0; e < kEvents; ++e) {
                state = next_state(state);
                const float u = ((output_word(state) >> 8) + 0.5f) * (1.0f / 16777216.0f);
                const float loss = -t.mean_loss * std::log(u);
                total += std::fmin(std::fmax(loss - t.retention, 0.0f), t.limit);
            }
            sum += total;
            top = std::fmax(top, total);
        }
        sum /= kYears;
        if (!(std::fabs(mean[r] - sum) <= 1e-3 * sum && std::fabs(worst[r] - top) <= 1e-3 * top)) {
            std::fprintf(stderr, "region %d: mean %f (%f), worst %f (%f)\n", r, mean[r], sum,
                         worst[r], top);
            return false;
        }
    }
    return true;
}

int main()
{
    float *annual, *mean, *worst;
    CU(cudaMalloc(&annual, sizeof(float) * kRegions * kYears));
    CU(cudaMalloc(&mean, sizeof(float) * kRegions));
    CU(cudaMalloc(&worst, sizeof(float) * kRegions));
    cudaStream_t stream;
    CU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraphExec_t model = record_model(stream, annual, mean, worst);

    CU(cudaGraphLaunch(model, stream));
    CU(cudaStreamSynchronize(stream));

    const int iterations = 100;
    cudaEvent_t start, stop;
    CU(cudaEventCreate(&start));
    CU(cudaEventCreate(&stop));
    CU(cudaEventRecord(start, stream));
    for (int it = 0; it < iterations; ++it) CU(cudaGraphLaunch(model, stream));
    CU(cudaEventRecord(stop, stream));
    CU(cudaEventSynchronize(stop));
    float ms = 0.0f;
    CU(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> hm(kRegions), hw(kRegions);
    CU(cudaMemcpy(hm.data(), mean, sizeof(float) * kRegions, cudaMemcpyDeviceToHost));
    CU(cudaMemcpy(hw.data(), worst, sizeof(float) * kRegions, cudaMemcpyDeviceToHost));
    const bool ok = verify(hm, hw);
    std::printf(ok ? "ok\n" : "WRONG\n");
    return ok ? 0 : 1;
}
