// SPDX-License-Identifier: Apache-2.0. Nearest-depot travel times on a city road grid with diagonal arterials.
// Pull-style relaxation in rounds over an ELL adjacency until nothing changes.
#include <cstdio>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>
#include <functional>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int SIDE = 512;
constexpr int NODES = SIDE * SIDE;
constexpr int DEGREE = 6;
constexpr int DEPOTS = 96;
constexpr int FAR = 1 << 29;

struct Road { int from; int seconds; };

static uint32_t hash32(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// Incoming roads, slot-major so that neighbouring nodes read neighbouring entries.
static void build_roads(std::vector<Road>& roads) {
    static const int dx[DEGREE] = {1, -1, 0, 0, 1, -1}, dy[DEGREE] = {0, 0, 1, -1, 1, -1};
    roads.resize((size_t)NODES * DEGREE);
    for (int v = 0; v < NODES; ++v)
        for (int k = 0; k < DEGREE; ++k) {
            const int x = v % SIDE + dx[k], y = v / SIDE + dy[k];
            const bool inside = x >= 0 && y >= 0 && x < SIDE && y < SIDE;
            const int base = k < 4 ? 20 : 45;
            roads[(size_t)k * NODES + v] =
                inside ? Road{y * SIDE + x, base + (int)(hash32(v * DEGREE + k) % 60u)} : Road{v, 0};
        }
}

__global__ void seed(int* __restrict__ time, const int* __restrict__ depots) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    int t = FAR;
    for (int d = 0; d < DEPOTS; ++d)
        if (depots[d] == v) t = 0;
    time[v] = t;
}

// Times only ever fall, so reading a neighbour's older value is harmless.
__global__ void relax(const Road* __restrict__ roads, int* time, int* changed) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    Road r[DEGREE];
#pragma unroll
    for (int k = 0; k < DEGREE; ++k) r[k] = roads[(size_t)k * NODES + v];
    const int old = time[v];
    int best = old;
#pragma unroll
    for (int k = 0; k < DEGREE; ++k) best = min(best, time[r[k].from] + r[k].seconds);
    if (best < old) {
        time[v] = best;
        *changed = 1;
    }
}

int main() {
    std::vector<Road> roads;
    build_roads(roads);
    std::vector<int> depots(DEPOTS);
    for (int d = 0; d < DEPOTS; ++d) depots[d] = (int)(hash32(77u + d) % NODES);

    Road* d_roads;
    int *d_depots, *time, *changed;
    CK(cudaMalloc(&d_roads, roads.size() * sizeof(Road)));
    CK(cudaMalloc(&d_depots, DEPOTS * sizeof(int)));
    CK(cudaMalloc(&time, NODES * sizeof(int)));
    CK(cudaMalloc(&changed, sizeof(int)));
    CK(cudaMemcpy(d_roads, roads.data(), roads.size() * sizeof(Road), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_depots, depots.data(), DEPOTS * sizeof(int), cudaMemcpyHostToDevice));

    const int iters = 20, threads = 256, grid = NODES / threads;
    int rounds = 0;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        seed<<<grid, threads>>>(time, d_depots);
        CK(cudaMemsetAsync(changed, 0, sizeof(int)));
        for (rounds = 1;; ++rounds) {
            relax<<<grid, threads>>>(d_roads, time, changed);
            if (rounds % 8) continue;
            int moved = 0;
            CK(cudaMemcpy(&moved, changed, sizeof(int), cudaMemcpyDeviceToHost));
            if (!moved) break;
            CK(cudaMemsetAsync(changed, 0, sizeof(int)));
        }
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);
    printf("rounds: %d\n", rounds);

    std::vector<int> got(NODES), want(NODES, FAR);
    CK(cudaMemcpy(got.data(), time, NODES * sizeof(int), cudaMemcpyDeviceToHost));
    // Dijkstra over the reversed lists: node u feeds the neighbours that name it.
    static const int dx[DEGREE] = {1, -1, 0, 0, 1, -1}, dy[DEGREE] = {0, 0, 1, -1, 1, -1};
    typedef std::pair<int, int> Entry;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> heap;
    for (int d : depots) { want[d] = 0; heap.push(Entry(0, d)); }
    while (!heap.empty()) {
        const Entry e = heap.top();
        heap.pop();
        const int u = e.second;
        if (e.first > want[u]) continue;
        for (int k = 0; k < DEGREE; ++k) {
            const int x = u % SIDE - dx[k], y = u / SIDE - dy[k];
            if (x < 0 || y < 0 || x >= SIDE || y >= SIDE) continue;
            const int v = y * SIDE + x, t = e.first + roads[(size_t)k * NODES + v].seconds;
            if (t < want[v]) { want[v] = t; heap.push(Entry(t, v)); }
        }
    }
    for (int v = 0; v < NODES; ++v)
        if (got[v] != want[v]) { printf("node %d: %d instead of %d\n", v, got[v], want[v]); return 1; }
    return 0;
}
