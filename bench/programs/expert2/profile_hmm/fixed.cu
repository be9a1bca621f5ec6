// SPDX-License-Identifier: Apache-2.0
// Forward trellis of a circular profile HMM (protein family scan).
// One block scores one sequence: a thread per model state, one trellis row per residue.
// The current row is handed from warp to warp through two shared-memory rows; every row
// is also kept in device memory for the later posterior decoding.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int STATES = 128;
constexpr int SYMBOLS = 32;
constexpr int RESIDUES = 512;
constexpr int SEQUENCES = 1056;

struct Transitions { float stay, step, skip; };

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// Odds ratio of a state against the background model for one more residue.
__device__ __forceinline__ float advance(const float* row, int s, float odds, const Transitions& tr) {
    const float a0 = row[s];
    const float a1 = row[(s + STATES - 1) & (STATES - 1)];
    const float a2 = row[(s + STATES - 2) & (STATES - 1)];
    return odds * (tr.stay * a0 + tr.step * a1 + tr.skip * a2);
}

__global__ void __launch_bounds__(STATES)
forward_trellis(const unsigned char* __restrict__ residues, const float* __restrict__ odds,
                float* __restrict__ trellis, Transitions tr) {
    __shared__ float rows[2][STATES];
    __shared__ unsigned char text[RESIDUES];
    const int s = threadIdx.x;
    const unsigned char* sequence = residues + (size_t)blockIdx.x * RESIDUES;
    float* out = trellis + (size_t)blockIdx.x * RESIDUES * STATES;

    reinterpret_cast<unsigned*>(text)[s] = reinterpret_cast<const unsigned*>(sequence)[s];
    rows[0][s] = 1.0f;
    __syncthreads();

    for (int t = 0; t < RESIDUES; ++t) {
        const float e = odds[text[t] * STATES + s];
        const float v = advance(rows[t & 1], s, e, tr);
        out[t * STATES + s] = v;
        rows[(t + 1) & 1][s] = v;
        __threadfence_block();
        __syncthreads();
    }
}

int main() {
    static_assert(RESIDUES == 4 * STATES, "text is loaded as one word per thread");
    const int iterations = 50;
    const Transitions tr = { 0.5f, 0.3f, 0.2f };

    std::vector<unsigned char> residues((size_t)SEQUENCES * RESIDUES);
    for (size_t i = 0; i < residues.size(); ++i) residues[i] = (unsigned char)(mix((unsigned)i + 11u) % SYMBOLS);
    std::vector<float> odds(SYMBOLS * STATES);
    for (int i = 0; i < SYMBOLS * STATES; ++i) odds[i] = 0.5f + (mix(i ^ 0x1234567u) >> 8) * (1.0f / 16777216.0f);

    unsigned char* d_res; float *d_odds, *d_trellis;
    const size_t trellis_count = (size_t)SEQUENCES * RESIDUES * STATES;
    CK(cudaMalloc(&d_res, residues.size()));
    CK(cudaMalloc(&d_odds, odds.size() * sizeof(float)));
    CK(cudaMalloc(&d_trellis, trellis_count * sizeof(float)));
    CK(cudaMemcpy(d_res, residues.data(), residues.size(), cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_odds, odds.data(), odds.size() * sizeof(float), cudaMemcpyHostToDevice));
    CK(cudaMemset(d_trellis, 0, trellis_count * sizeof(float)));

    forward_trellis<<<SEQUENCES, STATES>>>(d_res, d_odds, d_trellis, tr);
    CK(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i)
        forward_trellis<<<SEQUENCES, STATES>>>(d_res, d_odds, d_trellis, tr);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    // Whole trellises of a few sequences, in double precision.
    int bad = 0;
    std::vector<float> got(RESIDUES * STATES);
    for (int q = 0; q < SEQUENCES; q += 131) {
        CK(cudaMemcpy(got.data(), d_trellis + (size_t)q * RESIDUES * STATES, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
        std::vector<double> cur(STATES, 1.0), nxt(STATES);
        for (int t = 0; t < RESIDUES; ++t) {
            const int sym = residues[(size_t)q * RESIDUES + t];
            for (int s = 0; s < STATES; ++s) {
                const double mixd = (double)tr.stay * cur[s] + (double)tr.step * cur[(s + STATES - 1) % STATES] +
                                    (double)tr.skip * cur[(s + STATES - 2) % STATES];
                nxt[s] = odds[sym * STATES + s] * mixd;
                if (!(std::fabs(got[t * STATES + s] - nxt[s]) <= 1e-3 * nxt[s])) ++bad;
            }
            cur.swap(nxt);
        }
    }
    std::printf("cells out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
