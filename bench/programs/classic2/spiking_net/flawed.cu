// SPDX-License-Identifier: Apache-2.0
// Population of FitzHugh-Nagumo neurons with a decaying synaptic drive and a calcium trace.  Two copies of the population alternate as "current" and "next"; each neuron
// has its own membrane, synapse and adaptation parameters.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(x)                                                             \
    do {                                                                          \
        const cudaError_t rc = (x);                                               \
        if (rc != cudaSuccess) {                                                  \
            fprintf(stderr, "%s (line %d)\n", cudaGetErrorString(rc), __LINE__);  \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kNeurons = 4 << 20;
constexpr int kBlock = 256;
constexpr int kTimedSteps = 100;
constexpr float kDt = 0.05f;

// One neuron as the step works on it.
struct Neuron {
    float4 dyn;    // v, w, synaptic drive, calcium
    float4 mem;    // a, b, 1/tau, bias current
    float4 syn;    // decay, input level, gain, input phase
    float4 cal;    // decay, rise, floor, feedback
};

struct Population {
    float4* dyn;
    float4* mem;
    float4* syn;
    float4* cal;
};

__host__ __device__ inline float rnd(uint32_t i, uint32_t salt) {
    uint32_t h = i * 0x9E3779B1u + salt * 0x85EBCA77u;
    h ^= h >> 15; h *= 0x2C1B3C6Du;
    h ^= h >> 12; h *= 0x297A2D39u;
    h ^= h >> 15;
    return (float)(h >> 8) * (1.0f / 16777216.0f);
}

__host__ __device__ inline Neuron restingNeuron(uint32_t i) {
    Neuron n;
    n.dyn = make_float4(-1.2f + 0.4f * rnd(i, 1), -0.6f + 0.2f * rnd(i, 2), 0.1f * rnd(i, 3), 0.0f);
    n.mem = make_float4(0.6f + 0.2f * rnd(i, 4), 0.7f + 0.2f * rnd(i, 5), 0.08f, 0.3f * rnd(i, 6));
    n.syn = make_float4(0.2f + 0.2f * rnd(i, 7), 0.1f * rnd(i, 8), 0.5f + rnd(i, 9), rnd(i, 10));
    n.cal = make_float4(0.05f + 0.05f * rnd(i, 11), 0.2f, 0.01f, 0.1f * rnd(i, 12));
    return n;
}

__device__ inline Neuron loadNeuron(const Population& p, int i) {
    Neuron n;
    n.dyn = p.dyn[i];
    n.mem = p.mem[i];
    n.syn = p.syn[i];
    n.cal = p.cal[i];
    return n;
}

__device__ inline void storeNeuron(const Population& p, int i, const Neuron& n) {
    p.dyn[i] = n.dyn;
    p.mem[i] = n.mem;
    p.syn[i] = n.syn;
    p.cal[i] = n.cal;
}

__global__ void restPopulation(Population p) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= kNeurons) return;
    const Neuron n = restingNeuron(i);
    p.dyn[i] = n.dyn;
    p.mem[i] = n.mem;
    p.syn[i] = n.syn;
    p.cal[i] = n.cal;
}

// Explicit Euler for the four state variables.
__device__ inline void advance(Neuron& n) {
    const float v = n.dyn.x, w = n.dyn.y, s = n.dyn.z, ca = n.dyn.w;
    const float drive = n.mem.w + n.syn.z * s - n.cal.w * ca;
    const float dv = v - v * v * v * (1.0f / 3.0f) - w + drive;
    const float dw = n.mem.z * (v + n.mem.x - n.mem.y * w);
    const float ds = n.syn.y * (1.0f + n.syn.w) - n.syn.x * s;
    const float dc = n.cal.y * fmaxf(v, 0.0f) - n.cal.x * (ca - n.cal.z);
    n.dyn = make_float4(v + kDt * dv, w + kDt * dw, s + kDt * ds, ca + kDt * dc);
}

__global__ void __launch_bounds__(kBlock)
stepPopulation(Population cur, Population next) {
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= kNeurons) return;
    Neuron n = loadNeuron(cur, i);
    advance(n);
    storeNeuron(next, i, n);
}

static Population allocatePopulation() {
    Population p;
    const size_t bytes = sizeof(float4) * (size_t)kNeurons;
    CUDA_CHECK(cudaMalloc(&p.dyn, bytes));
    CUDA_CHECK(cudaMalloc(&p.mem, bytes));
    CUDA_CHECK(cudaMalloc(&p.syn, bytes));
    CUDA_CHECK(cudaMalloc(&p.cal, bytes));
    return p;
}

// Same model in double precision, one neuron for the given number of steps.
static void simulateRef(uint32_t i, int steps, double out[4]) {
    const Neuron n = restingNeuron(i);
    double v = n.dyn.x, w = n.dyn.y, s = n.dyn.z, ca = n.dyn.w;
    for (int k = 0; k < steps; ++k) {
        const double drive = n.mem.w + n.syn.z * s - n.cal.w * ca;
        const double dv = v - v * v * v / 3.0 - w + drive;
        const double dw = n.mem.z * (v + n.mem.x - n.mem.y * w);
        const double ds = n.syn.y * (1.0 + n.syn.w) - n.syn.x * s;
        const double dc = n.cal.y * (v > 0 ? v : 0.0) - n.cal.x * (ca - n.cal.z);
        v += kDt * dv; w += kDt * dw; s += kDt * ds; ca += kDt * dc;
    }
    out[0] = v; out[1] = w; out[2] = s; out[3] = ca;
}

int main() {
    Population cur = allocatePopulation(), next = allocatePopulation();
    const int grid = kNeurons / kBlock;
    restPopulation<<<grid, kBlock>>>(cur);
    restPopulation<<<grid, kBlock>>>(next);
    CUDA_CHECK(cudaGetLastError());

    stepPopulation<<<grid, kBlock>>>(cur, next);
    std::swap(cur, next);
    CUDA_CHECK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CUDA_CHECK(cudaEventCreate(&t0));
    CUDA_CHECK(cudaEventCreate(&t1));
    CUDA_CHECK(cudaEventRecord(t0));
    for (int k = 0; k < kTimedSteps; ++k) {
        stepPopulation<<<grid, kBlock>>>(cur, next);
        std::swap(cur, next);
    }
    CUDA_CHECK(cudaEventRecord(t1));
    CUDA_CHECK(cudaEventSynchronize(t1));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.0f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.3f\n", ms * 1000.0f / kTimedSteps);

    std::vector<float4> got(kNeurons);
    CUDA_CHECK(cudaMemcpy(got.data(), cur.dyn, sizeof(float4) * (size_t)kNeurons,
                          cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 11; i < kNeurons; i += 1021) {
        double want[4];
        simulateRef(i, kTimedSteps + 1, want);
        const float have[4] = {got[i].x, got[i].y, got[i].z, got[i].w};
        for (int k = 0; k < 4; ++k)
            if (!(std::fabs(have[k] - want[k]) <= 2e-3 + 2e-3 * std::fabs(want[k]))) ++bad;
    }
    if (bad) {
        printf("neurons off the reference trajectory: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
