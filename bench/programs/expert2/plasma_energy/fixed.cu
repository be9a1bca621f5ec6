// SPDX-License-Identifier: Apache-2.0
// Electrostatic energy build-up of a plasma sample.
// Charges are brought in one after another; phi[i] is the potential that charge i meets,
// that is, the softened Coulomb sum over all charges placed before it:
//
//   phi[i] = sum_{j < i} q_j / sqrt(|r_i - r_j|^2 + eps^2)
//
// A block works on 64 rows at a time: 8 groups of threads share the columns of a tile
// held in shared memory. Blocks are persistent, one per SM.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int CHARGES = 65536;
constexpr int ROWS = 64;
constexpr int GROUPS = 8;
constexpr int THREADS = ROWS * GROUPS;
constexpr int COLS = THREADS;               // columns per shared tile
constexpr int SHARE = COLS / GROUPS;        // columns per group
constexpr int TILES = CHARGES / ROWS;

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ __forceinline__ float pair_potential(const float4& r, const float4& c, float eps2) {
    const float dx = r.x - c.x, dy = r.y - c.y, dz = r.z - c.z;
    return c.w * rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2))));
}

__global__ void __launch_bounds__(THREADS)
build_up(const float4* __restrict__ charges, float* __restrict__ phi, float eps2) {
    __shared__ float4 cols[COLS];
    __shared__ float part[GROUPS][ROWS];
    const int r = threadIdx.x % ROWS, g = threadIdx.x / ROWS;
    const int rounds = (TILES + gridDim.x - 1) / gridDim.x;

    for (int k = 0; k < rounds; ++k) {
        const int tile = blockIdx.x + k * gridDim.x;
        if (tile >= TILES) break;
        const int row0 = tile * ROWS;
        const int row = row0 + r;
        const float4 me = charges[row];
        float s0 = 0.0f, s1 = 0.0f;

        // Columns that come before all of the rows.
        const int full = row0 / COLS * COLS;
        for (int c0 = 0; c0 < full; c0 += COLS) {
            cols[threadIdx.x] = charges[c0 + threadIdx.x];
            __syncthreads();
            const float4* mine = cols + g * SHARE;
#pragma unroll 8
            for (int j = 0; j < SHARE; j += 2) {
                s0 += pair_potential(me, mine[j], eps2);
                s1 += pair_potential(me, mine[j + 1], eps2);
            }
            __syncthreads();
        }
        // The last tile of columns reaches past the diagonal.
        cols[threadIdx.x] = charges[full + threadIdx.x];
        __syncthreads();
        for (int j = g; full + j < row; j += GROUPS) s0 += pair_potential(me, cols[j], eps2);

        part[g][r] = s0 + s1;
        __syncthreads();
        if (g == 0) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < GROUPS; ++i) sum += part[i][r];
            phi[row] = sum;
        }
        __syncthreads();
    }
}

int main() {
    const int iterations = 20;
    const float eps2 = 1e-4f;
    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));

    std::vector<float4> charges(CHARGES);
    for (unsigned i = 0; i < CHARGES; ++i) {
        auto u = [&](unsigned k) { return (mix(4 * i + k) >> 8) * (1.0f / 16777216.0f); };
        charges[i] = make_float4(u(0), u(1), u(2), 0.5f + u(3));
    }
    float4* d_charges; float* d_phi;
    CK(cudaMalloc(&d_charges, CHARGES * sizeof(float4)));
    CK(cudaMalloc(&d_phi, CHARGES * sizeof(float)));
    CK(cudaMemcpy(d_charges, charges.data(), CHARGES * sizeof(float4), cudaMemcpyHostToDevice));
    CK(cudaMemset(d_phi, 0xff, CHARGES * sizeof(float)));

    build_up<<<sms, THREADS>>>(d_charges, d_phi, eps2);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) build_up<<<sms, THREADS>>>(d_charges, d_phi, eps2);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> phi(CHARGES);
    CK(cudaMemcpy(phi.data(), d_phi, CHARGES * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 0; i < CHARGES; i += 173) {
        double want = 0.0;
        for (int j = 0; j < i; ++j) {
            const double dx = (double)charges[i].x - charges[j].x, dy = (double)charges[i].y - charges[j].y,
                         dz = (double)charges[i].z - charges[j].z;
            want += charges[j].w / std::sqrt(dx * dx + dy * dy + dz * dz + eps2);
        }
        if (!(std::fabs(phi[i] - want) <= 1e-3 * want + 1e-6)) ++bad;
    }
    std::printf("rows out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
