// SPDX-License-Identifier: Apache-2.0
// Scan of a 2-bit packed genome for a transcription-factor motif of 16 bases, both strands at once: a score matrix entry holds the forward score in its low
// half and the reverse-complement score in its high half, so that one packed
// addition scores both.  A thread owns the 16 windows that start in its word.
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CU_TRY(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "CUDA: %s (line %d)\n", cudaGetErrorString(e_), __LINE__); exit(2); } } while (0)

constexpr int MOTIF = 16;
constexpr uint32_t WORDS = 1u << 22;          // 16 bases each, 67 M bases
constexpr int THREADS = 256;
constexpr uint32_t CUTOFF = 2950;

__constant__ uint32_t motif_scores[MOTIF * 4];

struct WordHits { uint32_t best, mask; };

// Both strands of the window of 16 bases held in w.
__device__ __forceinline__ uint32_t score_window(uint32_t w, const uint32_t* scores) {
    uint32_t sum = 0;
#pragma unroll
    for (int j = 0; j < MOTIF; ++j) sum += scores[j * 4 + ((w >> (2 * j)) & 3u)];
    return sum;
}

__global__ void __launch_bounds__(THREADS)
scan_motif(const uint32_t* __restrict__ genome, uint32_t* __restrict__ hits, uint32_t* __restrict__ hit_words) {
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    __shared__ uint32_t scores[MOTIF * 4];
    if (threadIdx.x < MOTIF * 4) scores[threadIdx.x] = motif_scores[threadIdx.x];
    __syncthreads();
    const uint32_t lo = genome[i], hi = genome[i + 1];

    WordHits h = {0, 0};
#pragma unroll 4
    for (int p = 0; p < 16; ++p) {
        const uint32_t both = score_window(__funnelshift_r(lo, hi, 2 * p), scores);
        const uint32_t best = max(both & 0xffffu, both >> 16);
        h.best = max(h.best, best);
        h.mask |= uint32_t(best >= CUTOFF) << p;
    }
    hits[i] = h.best << 16 | h.mask;

    // One atomic a warp that has any hit; hits are rare.
    const unsigned any = __ballot_sync(~0u, h.mask != 0);
    if (any && (threadIdx.x & 31) == 0) atomicAdd(hit_words, __popc(any));
}

__host__ __device__ inline uint32_t base_word(uint32_t i) {
    uint32_t x = i * 0x9e3779b9u + 0x7f4a7c15u;
    x ^= x >> 15; x *= 0x2c1b3c6du; x ^= x >> 12; x *= 0x297a2d39u; x ^= x >> 15;
    return x;
}
__global__ void make_genome(uint32_t* genome, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) genome[i] = base_word(i);
}

// Position weights 0..255, the consensus base weighing most.
static std::vector<uint32_t> motif_matrix() {
    std::vector<uint32_t> m(MOTIF * 4);
    const char* consensus = "TGACCTTTGACCCCGA";
    auto code = [](char c) { return c == 'A' ? 0 : c == 'C' ? 1 : c == 'G' ? 2 : 3; };
    auto weight = [&](int j, int b) {
        return uint32_t(b == code(consensus[j]) ? 200 + 3 * j : 20 + (base_word(j * 4 + b + 99u) & 127u));
    };
    for (int j = 0; j < MOTIF; ++j)
        for (int b = 0; b < 4; ++b) m[j * 4 + b] = weight(j, b) | weight(MOTIF - 1 - j, 3 - b) << 16;
    return m;
}

int main() {
    uint32_t *genome, *hits, *hit_words;
    CU_TRY(cudaMalloc(&genome, (size_t(WORDS) + 1) * 4));
    CU_TRY(cudaMalloc(&hits, size_t(WORDS) * 4));
    CU_TRY(cudaMalloc(&hit_words, 4));
    CU_TRY(cudaMemset(hit_words, 0, 4));
    make_genome<<<(WORDS + 1 + 255) / 256, 256>>>(genome, WORDS + 1);
    const std::vector<uint32_t> matrix = motif_matrix();
    CU_TRY(cudaMemcpyToSymbol(motif_scores, matrix.data(), matrix.size() * 4));

    const dim3 grid(WORDS / THREADS);
    scan_motif<<<grid, THREADS>>>(genome, hits, hit_words);
    CU_TRY(cudaGetLastError());
    CU_TRY(cudaDeviceSynchronize());

    cudaEvent_t t0, t1;
    CU_TRY(cudaEventCreate(&t0));
    CU_TRY(cudaEventCreate(&t1));
    const int passes = 50;
    CU_TRY(cudaEventRecord(t0));
    for (int i = 0; i < passes; ++i) scan_motif<<<grid, THREADS>>>(genome, hits, hit_words);
    CU_TRY(cudaEventRecord(t1));
    CU_TRY(cudaEventSynchronize(t1));
    float ms = 0;
    CU_TRY(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / passes);

    std::vector<uint32_t> got(WORDS);
    uint32_t words_hit = 0, counted = 0;
    CU_TRY(cudaMemcpy(got.data(), hits, got.size() * 4, cudaMemcpyDeviceToHost));
    CU_TRY(cudaMemcpy(&words_hit, hit_words, 4, cudaMemcpyDeviceToHost));
    for (uint32_t g : got) counted += (g & 0xffffu) != 0;
    int bad = words_hit != counted * uint32_t(passes + 1);
    for (uint32_t s = 0; s < 8000; ++s) {
        const uint32_t i = s < 16 ? WORDS - 1 - s : (s * 2654435761u) % WORDS;
        const uint64_t pair = uint64_t(base_word(i)) | uint64_t(base_word(i + 1)) << 32;
        uint32_t best = 0, mask = 0;
        for (int p = 0; p < 16; ++p) {
            uint32_t fwd = 0, rev = 0;
            for (int j = 0; j < MOTIF; ++j) {
                const uint32_t e = matrix[j * 4 + ((pair >> (2 * (p + j))) & 3)];
                fwd += e & 0xffffu;
                rev += e >> 16;
            }
            const uint32_t top = std::max(fwd, rev);
            best = std::max(best, top);
            if (top >= CUTOFF) mask |= 1u << p;
        }
        bad += got[i] != (best << 16 | mask);
    }
    printf("words with hits: %u\n", counted);
    if (bad) printf("bad: %d\n", bad);
    return bad ? 1 : 0;
}
