// SPDX-License-Identifier: Apache-2.0
// Leader ordering of a compound library: for every molecule, how many molecules before it in the list have a Tanimoto similarity of at least 0.42, from
// 1024-bit fingerprints.  Only the lower triangle of the similarity matrix is
// computed.  Fingerprints are stored word-major, so that a tile of 64 molecules
// is 32 rows of 256 bytes.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define GPU(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s, line %d\n", cudaGetErrorString(e_), __LINE__); exit(2); } } while (0)

constexpr int WORDS = 32, TILE = 64, THREADS = 256;
constexpr int ROW_TILES = 264, MOLECULES = ROW_TILES * TILE;
constexpr int CTAS = ROW_TILES / 2;            // two row tiles a CTA

__device__ __forceinline__ void cp16(void* smem, const void* gmem) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(smem))), "l"(gmem) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> __device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }

using FpTile = uint32_t[WORDS][TILE];

__device__ __forceinline__ void fetch_tile(FpTile& dst, const uint32_t* fp, int tile) {
#pragma unroll
    for (int i = threadIdx.x; i < WORDS * TILE / 4; i += THREADS) {
        const int w = i / (TILE / 4), c = (i % (TILE / 4)) * 4;
        cp16(&dst[w][c], fp + size_t(w) * MOLECULES + tile * TILE + c);
    }
}

// similarity >= 0.42, in integers
__host__ __device__ __forceinline__ bool similar(int common, int bits_a, int bits_b) {
    return common * 100 >= 42 * (bits_a + bits_b - common);
}

// Which row tile a CTA works on in its first and second pass.
__device__ __forceinline__ int row_tile_of(int cta, int pass) {
    return 2 * cta + pass;
}

__global__ void __launch_bounds__(THREADS, 1)
count_earlier_neighbours(const uint32_t* __restrict__ fp, const int* __restrict__ bits, int* __restrict__ neighbours) {
    __shared__ __align__(16) FpTile rows;
    __shared__ __align__(16) FpTile cols[2];
    const int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;

    for (int pass = 0; pass < 2; ++pass) {
        const int rt = row_tile_of(blockIdx.x, pass);
        const int i0 = rt * TILE + ty * 4;
        fetch_tile(rows, fp, rt);
        fetch_tile(cols[0], fp, 0);
        cp_commit();
        const int4 row_bits = *reinterpret_cast<const int4*>(bits + i0);
        const int rb[4] = {row_bits.x, row_bits.y, row_bits.z, row_bits.w};
        int hits[4] = {};

        for (int ct = 0; ct <= rt; ++ct) {
            if (ct < rt) fetch_tile(cols[(ct + 1) & 1], fp, ct + 1);
            cp_commit();
            const int j0 = ct * TILE + tx * 4;
            const int4 col_bits = *reinterpret_cast<const int4*>(bits + j0);
            cp_wait<1>();
            __syncthreads();

            const FpTile& c = cols[ct & 1];
            int common[4][4] = {};
#pragma unroll 8
            for (int w = 0; w < WORDS; ++w) {
                const uint4 rv = *reinterpret_cast<const uint4*>(&rows[w][ty * 4]);
                const uint4 cv = *reinterpret_cast<const uint4*>(&c[w][tx * 4]);
                const uint32_t r[4] = {rv.x, rv.y, rv.z, rv.w}, q[4] = {cv.x, cv.y, cv.z, cv.w};
#pragma unroll
                for (int a = 0; a < 4; ++a)
#pragma unroll
                    for (int b = 0; b < 4; ++b) common[a][b] += __popc(r[a] & q[b]);
            }
            const int cb[4] = {col_bits.x, col_bits.y, col_bits.z, col_bits.w};
#pragma unroll
            for (int a = 0; a < 4; ++a)
#pragma unroll
                for (int b = 0; b < 4; ++b) hits[a] += j0 + b < i0 + a && similar(common[a][b], rb[a], cb[b]);
            __syncthreads();
        }

#pragma unroll
        for (int a = 0; a < 4; ++a) {
            for (int o = 8; o; o >>= 1) hits[a] += __shfl_xor_sync(~0u, hits[a], o);
            if (tx == 0) neighbours[i0 + a] = hits[a];
        }
    }
}

__host__ __device__ inline uint32_t mixer(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
// A scaffold's pattern with a quarter of the bits flipped by substituents.
__host__ __device__ inline uint32_t fingerprint_word(int molecule, int w) {
    const uint32_t scaffold = mixer(uint32_t(molecule)) % 977u;
    const uint32_t base = mixer(scaffold * 64u + w + 1000003u);
    const uint32_t flips = mixer(uint32_t(molecule) * 64u + w) & mixer(uint32_t(molecule) * 64u + w + 0x51ed270bu);
    return base ^ flips;
}
__global__ void make_library(uint32_t* fp, int* bits) {
    const int m = blockIdx.x * blockDim.x + threadIdx.x;
    if (m >= MOLECULES) return;
    int n = 0;
    for (int w = 0; w < WORDS; ++w) {
        const uint32_t x = fingerprint_word(m, w);
        fp[size_t(w) * MOLECULES + m] = x;
        n += __popc(x);
    }
    bits[m] = n;
}

int main() {
    uint32_t* fp; int *bits, *neighbours;
    GPU(cudaMalloc(&fp, size_t(WORDS) * MOLECULES * 4));
    GPU(cudaMalloc(&bits, MOLECULES * 4));
    GPU(cudaMalloc(&neighbours, MOLECULES * 4));
    make_library<<<MOLECULES / 128, 128>>>(fp, bits);

    count_earlier_neighbours<<<CTAS, THREADS>>>(fp, bits, neighbours);
    GPU(cudaGetLastError());
    GPU(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    GPU(cudaEventCreate(&a));
    GPU(cudaEventCreate(&b));
    const int runs = 40;
    GPU(cudaEventRecord(a));
    for (int i = 0; i < runs; ++i) count_earlier_neighbours<<<CTAS, THREADS>>>(fp, bits, neighbours);
    GPU(cudaEventRecord(b));
    GPU(cudaEventSynchronize(b));
    float ms = 0;
    GPU(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / runs);

    std::vector<int> got(MOLECULES);
    GPU(cudaMemcpy(got.data(), neighbours, MOLECULES * 4, cudaMemcpyDeviceToHost));
    std::vector<uint32_t> host(size_t(MOLECULES) * WORDS);
    std::vector<int> hbits(MOLECULES, 0);
    for (int m = 0; m < MOLECULES; ++m)
        for (int w = 0; w < WORDS; ++w) {
            host[size_t(m) * WORDS + w] = fingerprint_word(m, w);
            hbits[m] += __builtin_popcount(host[size_t(m) * WORDS + w]);
        }
    int wrong = 0;
    for (int s = 0; s < 96; ++s) {
        const int i = s == 0 ? MOLECULES - 1 : s == 1 ? 0 : (s * 7919 + 31) % MOLECULES;
        int n = 0;
        for (int j = 0; j < i; ++j) {
            int common = 0;
            for (int w = 0; w < WORDS; ++w) common += __builtin_popcount(host[size_t(i) * WORDS + w] & host[size_t(j) * WORDS + w]);
            n += similar(common, hbits[i], hbits[j]);
        }
        wrong += n != got[i];
    }
    if (wrong) printf("wrong rows: %d\n", wrong);
    return wrong ? 1 : 0;
}
