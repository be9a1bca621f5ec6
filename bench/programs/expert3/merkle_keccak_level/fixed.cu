// SPDX-License-Identifier: Apache-2.0. One level of a Keccak-256 Merkle tree: parent[i] = H(child[2i] || child[2i+1]).
// One thread carries the whole 1600-bit state of one parent in registers.
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int ROUNDS = 24;
constexpr int PARENTS = 1 << 20;
constexpr int THREADS = 256;

static const uint64_t kRoundConst[ROUNDS] = {
    0x0000000000000001ull, 0x0000000000008082ull, 0x800000000000808aull, 0x8000000080008000ull,
    0x000000000000808bull, 0x0000000080000001ull, 0x8000000080008081ull, 0x8000000000008009ull,
    0x000000000000008aull, 0x0000000000000088ull, 0x0000000080008009ull, 0x000000008000000aull,
    0x000000008000808bull, 0x800000000000008bull, 0x8000000000008089ull, 0x8000000000008003ull,
    0x8000000000008002ull, 0x8000000000000080ull, 0x000000000000800aull, 0x800000008000000aull,
    0x8000000080008081ull, 0x8000000000008080ull, 0x0000000080000001ull, 0x8000000080008008ull};

__constant__ uint64_t c_round[ROUNDS];

template <int R>
__device__ __forceinline__ uint64_t rotl(uint64_t v) {
    if constexpr (R == 0) return v;
    const uint32_t lo = (uint32_t)v, hi = (uint32_t)(v >> 32);
    uint32_t a, b;
    if constexpr (R < 32) {
        a = __funnelshift_l(hi, lo, R);
        b = __funnelshift_l(lo, hi, R);
    } else {
        a = __funnelshift_l(lo, hi, R - 32);
        b = __funnelshift_l(hi, lo, R - 32);
    }
    return ((uint64_t)b << 32) | a;
}

// Theta, rho, pi, chi and iota of one round, all indices known at compile time.
__device__ __forceinline__ void keccak_round(uint64_t (&a)[25], uint64_t rc) {
    uint64_t c[5], b[25];
#pragma unroll
    for (int x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
#pragma unroll
    for (int x = 0; x < 5; ++x) {
        const uint64_t d = c[(x + 4) % 5] ^ rotl<1>(c[(x + 1) % 5]);
#pragma unroll
        for (int y = 0; y < 25; y += 5) a[x + y] ^= d;
    }
    b[0]  = a[0];            b[10] = rotl<1>(a[1]);   b[20] = rotl<62>(a[2]);
    b[5]  = rotl<28>(a[3]);  b[15] = rotl<27>(a[4]);
    b[16] = rotl<36>(a[5]);  b[1]  = rotl<44>(a[6]);  b[11] = rotl<6>(a[7]);
    b[21] = rotl<55>(a[8]);  b[6]  = rotl<20>(a[9]);
    b[7]  = rotl<3>(a[10]);  b[17] = rotl<10>(a[11]); b[2]  = rotl<43>(a[12]);
    b[12] = rotl<25>(a[13]); b[22] = rotl<39>(a[14]);
    b[23] = rotl<41>(a[15]); b[8]  = rotl<45>(a[16]); b[18] = rotl<15>(a[17]);
    b[3]  = rotl<21>(a[18]); b[13] = rotl<8>(a[19]);
    b[14] = rotl<18>(a[20]); b[24] = rotl<2>(a[21]);  b[9]  = rotl<61>(a[22]);
    b[19] = rotl<56>(a[23]); b[4]  = rotl<14>(a[24]);
#pragma unroll
    for (int y = 0; y < 25; y += 5)
#pragma unroll
        for (int x = 0; x < 5; ++x) a[y + x] = b[y + x] ^ (~b[y + (x + 1) % 5] & b[y + (x + 2) % 5]);
    a[0] ^= rc;
}

__global__ void __launch_bounds__(THREADS, 2)
merkle_level(const ulonglong2* __restrict__ child, ulonglong2* __restrict__ parent, int n) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    uint64_t a[25];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const ulonglong2 v = child[(size_t)i * 4 + k];
        a[2 * k] = v.x;
        a[2 * k + 1] = v.y;
    }
#pragma unroll
    for (int k = 8; k < 25; ++k) a[k] = 0;
    a[8] = 0x01ull;                       // multi-rate padding, rate 136 bytes
    a[16] = 0x8000000000000000ull;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; ++r) keccak_round(a, c_round[r]);
    parent[(size_t)i * 2] = make_ulonglong2(a[0], a[1]);
    parent[(size_t)i * 2 + 1] = make_ulonglong2(a[2], a[3]);
}

__host__ __device__ inline uint64_t leaf_word(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

__global__ void make_leaves(uint64_t* w, size_t n) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) w[i] = leaf_word(i);
}

// Compact reference permutation.
static void keccak_ref(uint64_t* s) {
    static const int rot[24] = {1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44};
    static const int lane[24] = {10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1};
    auto rl = [](uint64_t v, int r) { return (v << r) | (v >> (64 - r)); };
    for (int round = 0; round < ROUNDS; ++round) {
        uint64_t c[5];
        for (int x = 0; x < 5; ++x) c[x] = s[x] ^ s[x + 5] ^ s[x + 10] ^ s[x + 15] ^ s[x + 20];
        for (int x = 0; x < 5; ++x)
            for (int y = 0; y < 25; y += 5) s[x + y] ^= c[(x + 4) % 5] ^ rl(c[(x + 1) % 5], 1);
        uint64_t t = s[1];
        for (int k = 0; k < 24; ++k) { const uint64_t u = s[lane[k]]; s[lane[k]] = rl(t, rot[k]); t = u; }
        for (int y = 0; y < 25; y += 5) {
            uint64_t row[5];
            memcpy(row, s + y, sizeof row);
            for (int x = 0; x < 5; ++x) s[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
        }
        s[0] ^= kRoundConst[round];
    }
}

int main() {
    const size_t words = (size_t)PARENTS * 8;
    uint64_t *child, *parent;
    CK(cudaMalloc(&child, words * 8));
    CK(cudaMalloc(&parent, words * 4));
    CK(cudaMemcpyToSymbol(c_round, kRoundConst, sizeof kRoundConst));
    make_leaves<<<(unsigned)((words + 255) / 256), 256>>>(child, words);
    const int grid = (PARENTS + THREADS - 1) / THREADS, iters = 30;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        merkle_level<<<grid, THREADS>>>((const ulonglong2*)child, (ulonglong2*)parent, PARENTS);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<uint64_t> got((size_t)PARENTS * 4);
    CK(cudaMemcpy(got.data(), parent, got.size() * 8, cudaMemcpyDeviceToHost));
    for (int i = 0; i < PARENTS; i += 1021) {
        uint64_t s[25] = {0};
        for (int k = 0; k < 8; ++k) s[k] = leaf_word((uint64_t)i * 8 + k);
        s[8] = 1;
        s[16] = 0x8000000000000000ull;
        keccak_ref(s);
        if (memcmp(s, &got[(size_t)i * 4], 32)) { printf("digest %d differs\n", i); return 1; }
    }
    return 0;
}
