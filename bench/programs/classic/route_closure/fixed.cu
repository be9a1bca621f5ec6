// SPDX-License-Identifier: Apache-2.0
// One squaring step of all-pairs shortest routes: next[i][j] = min over k of dist[i][k] + dist[k][j].
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>
#include <cuda_runtime.h>

#define TRY(c) try_((c), #c)
static void try_(cudaError_t e, const char* text) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "%s -> %s\n", text, cudaGetErrorString(e));
    exit(2);
}

constexpr int kNodes = 2048;
constexpr int kDepth = 32;                // nodes k per stage
constexpr int kLanes = 32, kWarps = 8;
constexpr int kRows = 4, kCols = 4;       // results per thread
constexpr int kTileRows = kWarps * kRows, kTileCols = kLanes * kCols;

__global__ void __launch_bounds__(kLanes * kWarps)
relax_all(const float* __restrict__ dist, float* __restrict__ next) {
    __shared__ float from[kTileRows][kDepth];
    __shared__ float onward[kDepth][kTileCols];
    const int lane = threadIdx.x % kLanes, warp = threadIdx.x / kLanes;
    const int row0 = blockIdx.y * kTileRows, col0 = blockIdx.x * kTileCols;

    float best[kRows][kCols];
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kCols; ++c) best[r][c] = INFINITY;

    for (int k0 = 0; k0 < kNodes; k0 += kDepth) {
        for (int i = threadIdx.x; i < kTileRows * kDepth; i += kLanes * kWarps)
            from[i / kDepth][i % kDepth] = dist[(row0 + i / kDepth) * kNodes + k0 + i % kDepth];
        for (int i = threadIdx.x; i < kDepth * kTileCols; i += kLanes * kWarps)
            onward[i / kTileCols][i % kTileCols] = dist[(k0 + i / kTileCols) * kNodes + col0 + i % kTileCols];
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < kDepth; ++k) {
            float a[kRows], b[kCols];
#pragma unroll
            for (int r = 0; r < kRows; ++r) a[r] = from[warp * kRows + r][k];
#pragma unroll
            for (int c = 0; c < kCols; ++c) b[c] = onward[k][c * kLanes + lane];
#pragma unroll
            for (int r = 0; r < kRows; ++r)
#pragma unroll
                for (int c = 0; c < kCols; ++c) best[r][c] = fminf(best[r][c], a[r] + b[c]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
        for (int c = 0; c < kCols; ++c)
            next[(row0 + warp * kRows + r) * kNodes + col0 + c * kLanes + lane] = best[r][c];
}

int main() {
    const size_t cells = (size_t)kNodes * kNodes;
    std::vector<float> graph(cells), result(cells);
    std::mt19937 rng(20240607);
    std::uniform_real_distribution<float> length(1.f, 100.f);
    for (int i = 0; i < kNodes; ++i)
        for (int j = 0; j < kNodes; ++j)
            graph[(size_t)i * kNodes + j] = i == j ? 0.f : rng() % 16 == 0 ? length(rng) : 1e9f;

    float *d_graph, *d_a, *d_b;
    TRY(cudaMalloc(&d_graph, cells * sizeof(float)));
    TRY(cudaMalloc(&d_a, cells * sizeof(float)));
    TRY(cudaMalloc(&d_b, cells * sizeof(float)));
    TRY(cudaMemcpy(d_graph, graph.data(), cells * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 grid(kNodes / kTileCols, kNodes / kTileRows), block(kLanes * kWarps);
    relax_all<<<grid, block>>>(d_graph, d_a);
    TRY(cudaMemcpy(result.data(), d_a, cells * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (size_t at = 0; at < cells; at += 1201) {
        const size_t i = at / kNodes, j = at % kNodes;
        float want = INFINITY;
        for (int k = 0; k < kNodes; ++k) want = std::min(want, graph[i * kNodes + k] + graph[(size_t)k * kNodes + j]);
        if (result[at] != want) ++bad;
    }

    cudaEvent_t start, stop;
    TRY(cudaEventCreate(&start));
    TRY(cudaEventCreate(&stop));
    const int squarings = 50;
    TRY(cudaEventRecord(start));
    for (int i = 0; i < squarings; ++i) {
        relax_all<<<grid, block>>>(d_a, d_b);
        std::swap(d_a, d_b);
    }
    TRY(cudaEventRecord(stop));
    TRY(cudaEventSynchronize(stop));
    TRY(cudaGetLastError());
    float ms;
    TRY(cudaEventElapsedTime(&ms, start, stop));
    printf("mismatches: %d\n", bad);
    printf("us_per_iteration: %.3f\n", ms * 1000.0 / squarings);
    return bad != 0;
}
