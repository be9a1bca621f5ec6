// SPDX-License-Identifier: Apache-2.0. IMA ADPCM decoding of an audio archive. Persistent blocks; fetch warps fill a ring of
// tiles by cp.async, decode warps expand them; the two sides meet at mbarriers.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int TILE = 256;                       // ADPCM blocks per tile, one lane each
constexpr int WORDS = 16;                       // eight 4-bit codes per word
constexpr int STAGES = 6;
constexpr int WARPS = 9;
constexpr int FETCH_WARPS = 1;
constexpr int DECODE_WARPS = WARPS - FETCH_WARPS;
constexpr int TILE_WORDS = (WORDS + 1) * TILE;  // row 0 holds the block headers
constexpr int SMEM_BYTES = STAGES * TILE_WORDS * 4;
constexpr int TILES = 132 * 2 * 12;

static const short kStep[89] = {
    7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107,
    118, 130, 143, 157, 173, 190, 209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963,
    1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024, 3327, 3660, 4026, 4428, 4871, 5358, 5894,
    6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767};

__host__ __device__ inline uint32_t hash32(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// Archive word: a header (predictor, step index) or eight codes, small steps most often.
__host__ __device__ inline uint32_t archive_word(uint32_t i) {
    const uint32_t row = i % TILE_WORDS / TILE;
    if (row == 0) return (hash32(i) & 0x0fffu) | ((20u + hash32(i + 7u) % 50u) << 16);
    uint32_t w = 0;
    for (int k = 0; k < 8; ++k) {
        const uint32_t h = hash32(i * 8u + k);
        const uint32_t mag = (h & 31u) < 27u ? (h >> 5) & 3u : 4u + ((h >> 5) & 3u);
        w |= (mag | ((h >> 9) & 8u)) << (4 * k);
    }
    return w;
}

__global__ void make_archive(uint32_t* a, uint32_t n) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = archive_word(i);
}

__host__ __device__ inline int next_sample(uint32_t code, int& pred, int& index, const short* step_table) {
    const int step = step_table[index];
    int diff = step >> 3;
    if (code & 4) diff += step;
    if (code & 2) diff += step >> 1;
    if (code & 1) diff += step >> 2;
    pred += (code & 8) ? -diff : diff;
    pred = pred < -32768 ? -32768 : pred > 32767 ? 32767 : pred;
    index += (code & 4) ? 2 * (int)(code & 3) + 2 : -1;
    index = index < 0 ? 0 : index > 88 ? 88 : index;
    return pred;
}

__device__ __forceinline__ void bar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}

__global__ void __launch_bounds__(WARPS * 32, 2)
decode_archive(const uint32_t* __restrict__ archive, uint4* __restrict__ pcm, const short* __restrict__ steps) {
    extern __shared__ __align__(128) uint32_t ring[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    __shared__ short step_table[96];
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const uint32_t full0 = (uint32_t)__cvta_generic_to_shared(full);
    const uint32_t empty0 = (uint32_t)__cvta_generic_to_shared(empty);
    if (tid < 89) step_table[tid] = steps[tid];
    if (tid == 0)
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full0 + 8 * s, FETCH_WARPS * 32);
            bar_init(empty0 + 8 * s, DECODE_WARPS);
        }
    __syncthreads();

    if (warp < FETCH_WARPS) {
        const uint32_t dst0 = (uint32_t)__cvta_generic_to_shared(ring);
        int slot = 0;
        uint32_t phase = 1;
        for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
            bar_wait(empty0 + 8 * slot, phase);
            const uint4* src = (const uint4*)(archive + (size_t)tile * TILE_WORDS);
            for (int c = tid; c < TILE_WORDS / 4; c += FETCH_WARPS * 32)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                             ::"r"(dst0 + slot * TILE_WORDS * 4 + c * 16), "l"(src + c) : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full0 + 8 * slot) : "memory");
            if (++slot == STAGES) { slot = 0; phase ^= 1; }
        }
    } else {
        int slot = 0;
        uint32_t phase = 0;
        for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
            bar_wait(full0 + 8 * slot, phase);
            const uint32_t* words = ring + slot * TILE_WORDS;
            for (int b = tid - FETCH_WARPS * 32; b < TILE; b += DECODE_WARPS * 32) {
                const uint32_t head = words[b];
                int pred = (int)(short)(head & 0xffffu), index = (int)(head >> 16);
                uint4* out = pcm + (size_t)tile * WORDS * TILE + b;
#pragma unroll 1
                for (int w = 0; w < WORDS; ++w) {
                    const uint32_t codes = words[(w + 1) * TILE + b];
                    uint32_t pair[4];
#pragma unroll
                    for (int k = 0; k < 4; ++k) {
                        const int lo = next_sample((codes >> (8 * k)) & 15u, pred, index, step_table);
                        const int hi = next_sample((codes >> (8 * k + 4)) & 15u, pred, index, step_table);
                        pair[k] = __byte_perm((uint32_t)lo, (uint32_t)hi, 0x5410);
                    }
                    __stcs(out + w * TILE, make_uint4(pair[0], pair[1], pair[2], pair[3]));
                }
            }
            __syncwarp();
            if (lane == 0) bar_arrive(empty0 + 8 * slot);
            if (++slot == STAGES) { slot = 0; phase ^= 1; }
        }
    }
}

int main() {
    const uint32_t words = (uint32_t)TILES * TILE_WORDS;
    const size_t groups = (size_t)TILES * WORDS * TILE;
    uint32_t* archive;
    uint4* pcm;
    short* steps;
    CK(cudaMalloc(&archive, (size_t)words * 4));
    CK(cudaMalloc(&pcm, groups * sizeof(uint4)));
    CK(cudaMalloc(&steps, sizeof kStep));
    CK(cudaMemcpy(steps, kStep, sizeof kStep, cudaMemcpyHostToDevice));
    make_archive<<<(words + 255) / 256, 256>>>(archive, words);
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    CK(cudaFuncSetAttribute(decode_archive, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    const int iters = 30;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        decode_archive<<<sms * 2, WARPS * 32, SMEM_BYTES>>>(archive, pcm, steps);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<short> got((size_t)WORDS * TILE * 8);
    for (int tile = 3; tile < TILES; tile += 167) {
        CK(cudaMemcpy(got.data(), pcm + (size_t)tile * WORDS * TILE, got.size() * 2, cudaMemcpyDeviceToHost));
        for (int b = 0; b < TILE; ++b) {
            const uint32_t first = (uint32_t)tile * TILE_WORDS + b, head = archive_word(first);
            int pred = (int)(short)(head & 0xffffu), index = (int)(head >> 16);
            for (int n = 0; n < WORDS * 8; ++n) {
                const uint32_t codes = archive_word(first + (n / 8 + 1) * TILE);
                const int want = next_sample((codes >> (4 * (n & 7))) & 15u, pred, index, kStep);
                if (got[((size_t)(n / 8) * TILE + b) * 8 + (n & 7)] != want) { printf("tile %d block %d sample %d differs\n", tile, b, n); return 1; }
            }
        }
    }
    return 0;
}
