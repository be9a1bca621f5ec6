// SPDX-License-Identifier: Apache-2.0
// Bulk cloud microphysics for a regional weather model.  For every grid cell four process rates are diagnosed: condensation, rain evaporation, melting and collection.
// The rates are independent of each other, so each (cell, process) is a task of its own.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define GPU(x)                                                                     \
    do {                                                                           \
        cudaError_t r_ = (x);                                                      \
        if (r_ != cudaSuccess) {                                                   \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(r_));    \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

constexpr int kCells = 1 << 20;
constexpr int kProcesses = 4;
constexpr int kSteps = 40;

struct Cell { float temp; float qv; float qc; float qr; };  // K, kg/kg, kg/kg, kg/kg

__host__ __device__ inline uint32_t scramble(uint32_t a) {
    a = (a + 0x7ed55d16u) + (a << 12);
    a = (a ^ 0xc761c23cu) ^ (a >> 19);
    a = (a + 0x165667b1u) + (a << 5);
    a = (a + 0xd3a2646cu) ^ (a << 9);
    a = (a + 0xfd7046c5u) + (a << 3);
    a = (a ^ 0xb55a4f09u) ^ (a >> 16);
    return a;
}

__host__ __device__ inline float unit(uint32_t a) {
    return (float)(scramble(a) >> 8) * (1.0f / 16777216.0f);
}

__host__ __device__ inline Cell initialCell(int i) {
    Cell c;
    c.temp = 265.0f + 30.0f * unit(4u * i);
    c.qv = 0.004f + 0.010f * unit(4u * i + 1u);
    c.qc = 0.0002f + 0.002f * unit(4u * i + 2u);
    c.qr = 0.0001f + 0.003f * unit(4u * i + 3u);
    return c;
}

__global__ void initCells(Cell* cells) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < kCells) cells[i] = initialCell(i);
}

// Saturation adjustment: damped fixed point for the wet-bulb temperature increment.
template <class T>
__host__ __device__ inline T condensation(T temp, T qv) {
    T dT = T(0);
    for (int k = 0; k < 28; ++k) {
        const T qs = T(0.0038) * exp(T(0.065) * (temp + dT - T(273.15)));
        const T target = T(2500) * (qv - qs);
        dT += T(0.3) * (target - dT) / (T(1) + T(160) * qs);
    }
    return dT;
}

// Evaporation below cloud base: integrates drop radius squared over the fall distance.
template <class T>
__host__ __device__ inline T evaporation(T temp, T qv, T qr) {
    const T deficit = T(0.02) - qv + T(0.0001) * (temp - T(265));
    T r2 = T(0.2) + T(300) * qr;
    T lost = T(0);
    for (int k = 0; k < 36; ++k) {
        const T vent = T(0.78) + T(0.3) * sqrt(r2);
        const T d = deficit * vent * T(0.4);
        lost += d * r2;
        r2 = r2 / (T(1) + d);
    }
    return lost;
}

// Melting of falling ice through the layer, ventilation from the current ice content.
template <class T>
__host__ __device__ inline T melting(T temp, T qc) {
    T ice = T(1) + T(200) * qc;
    T melt = T(0);
    const T heat = T(0.002) * (temp - T(260));
    for (int k = 0; k < 40; ++k) {
        const T rate = heat * log(T(1) + ice);
        melt += rate;
        ice = ice * T(0.98) + T(0.01) * rate + T(0.005);
    }
    return melt;
}

// Collection: quadrature of the drop spectrum against the collection kernel.
template <class T>
__host__ __device__ inline T collection(T qc, T qr) {
    const T slope = T(1.5) + T(0.5) / (T(0.5) + T(400) * qr);
    T sum = T(0);
    T d = T(0.05);
    for (int k = 0; k < 44; ++k) {
        const T spectrum = exp(-slope * d);
        const T eff = d * d / (d * d + T(0.3));
        sum += spectrum * eff * (T(1) + T(0.5) * d);
        d += T(0.05);
    }
    return sum * qc * T(100);
}

__global__ void __launch_bounds__(256)
processRates(const Cell* __restrict__ cells, float* __restrict__ rates) {
    const int task = blockIdx.x * blockDim.x + threadIdx.x;
    if (task >= kCells * kProcesses) return;
    const int process = task % kProcesses;
    const int cell = task / kProcesses;
    const Cell c = cells[cell];
    float rate = 0.0f;
    switch (process) {
        case 0: rate = condensation<float>(c.temp, c.qv); break;
        case 1: rate = evaporation<float>(c.temp, c.qv, c.qr); break;
        case 2: rate = melting<float>(c.temp, c.qc); break;
        default: rate = collection<float>(c.qc, c.qr); break;
    }
    rates[process * kCells + cell] = rate;
}

static double referenceRate(int process, const Cell& c) {
    switch (process) {
        case 0: return condensation<double>(c.temp, c.qv);
        case 1: return evaporation<double>(c.temp, c.qv, c.qr);
        case 2: return melting<double>(c.temp, c.qc);
        default: return collection<double>(c.qc, c.qr);
    }
}

int main() {
    Cell* cells;
    float* rates;
    GPU(cudaMalloc(&cells, sizeof(Cell) * kCells));
    GPU(cudaMalloc(&rates, sizeof(float) * kCells * kProcesses));
    initCells<<<kCells / 256, 256>>>(cells);
    GPU(cudaGetLastError());

    const int grid = kCells * kProcesses / 256;
    processRates<<<grid, 256>>>(cells, rates);
    GPU(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    GPU(cudaEventCreate(&a));
    GPU(cudaEventCreate(&b));
    GPU(cudaEventRecord(a));
    for (int s = 0; s < kSteps; ++s) processRates<<<grid, 256>>>(cells, rates);
    GPU(cudaEventRecord(b));
    GPU(cudaEventSynchronize(b));
    GPU(cudaGetLastError());
    float ms = 0.0f;
    GPU(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.3f\n", 1000.0f * ms / kSteps);

    std::vector<float> got((size_t)kCells * kProcesses);
    GPU(cudaMemcpy(got.data(), rates, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int s = 0; s < 2000; ++s) {
        const int cell = (int)(scramble(900000u + s) % kCells);
        const Cell c = initialCell(cell);
        for (int p = 0; p < kProcesses; ++p) {
            const double want = referenceRate(p, c);
            const double have = got[(size_t)p * kCells + cell];
            if (!(std::fabs(have - want) <= 2e-3 * std::fabs(want) + 2e-3)) ++bad;
        }
    }
    if (bad) {
        printf("rates out of tolerance: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
