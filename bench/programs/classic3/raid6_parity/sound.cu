// SPDX-License-Identifier: Apache-2.0. RAID-6 full-stripe write: P (xor) and Q (Reed-Solomon over GF(2^8), generator 2) parity
// of eight data disks. Each thread handles the same 16 bytes of every disk.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int DISKS = 8;
constexpr uint32_t STRIP_BYTES = 96u << 20;      // bytes per disk
constexpr uint32_t STRIP_VECS = STRIP_BYTES / 16;
constexpr int THREADS = 256;

__host__ __device__ inline uint32_t disk_word(uint32_t i) {
    uint32_t x = i * 2654435761u + 4242u;
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void fill_disks(uint32_t* data, uint32_t n) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) data[i] = disk_word(i);
}

// Multiply four field elements by 2, polynomial x^8 + x^4 + x^3 + x^2 + 1.
__device__ __forceinline__ uint32_t times2(uint32_t v) {
    const uint32_t carry = (v >> 7) & 0x01010101u;
    return ((v << 1) & 0xfefefefeu) ^ (carry * 0x1du);
}

__device__ __forceinline__ uint4 times2(uint4 v) {
    return make_uint4(times2(v.x), times2(v.y), times2(v.z), times2(v.w));
}

__device__ __forceinline__ uint4 operator^(uint4 a, uint4 b) {
    return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

__global__ void __launch_bounds__(THREADS)
encode_parity(const uint4* __restrict__ data, uint4* __restrict__ p, uint4* __restrict__ q) {
    const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
    uint4 d[DISKS];
#pragma unroll
    for (int k = 0; k < DISKS; ++k) d[k] = __ldcs(data + (size_t)k * STRIP_VECS + i);
    uint4 sum = d[DISKS - 1], syndrome = d[DISKS - 1];
#pragma unroll
    for (int k = DISKS - 2; k >= 0; --k) {
        sum = sum ^ d[k];
        syndrome = times2(syndrome) ^ d[k];
    }
    __stcs(p + i, sum);
    __stcs(q + i, syndrome);
}

static uint8_t gf_times2(uint8_t v) { return (uint8_t)((v << 1) ^ ((v & 0x80) ? 0x1d : 0)); }

int main() {
    const uint32_t words = STRIP_BYTES / 4 * DISKS;
    uint32_t *data, *p, *q;
    CK(cudaMalloc(&data, (size_t)words * 4));
    CK(cudaMalloc(&p, STRIP_BYTES));
    CK(cudaMalloc(&q, STRIP_BYTES));
    fill_disks<<<2112, 256>>>(data, words);

    const int iters = 30;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        encode_parity<<<STRIP_VECS / THREADS, THREADS>>>((const uint4*)data, (uint4*)p, (uint4*)q);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);
    printf("GB/s of data encoded: %.0f\n", (double)STRIP_BYTES * DISKS * iters / (ms * 1e6));

    std::vector<uint32_t> hp(STRIP_BYTES / 4), hq(STRIP_BYTES / 4);
    CK(cudaMemcpy(hp.data(), p, STRIP_BYTES, cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(hq.data(), q, STRIP_BYTES, cudaMemcpyDeviceToHost));
    for (uint32_t w = 0; w < STRIP_BYTES / 4; w += 251) {
        uint32_t wp = 0, wq = 0;
        for (int byte = 0; byte < 4; ++byte) {
            uint8_t bp = 0, bq = 0;
            for (int k = DISKS - 1; k >= 0; --k) {
                const uint8_t v = (uint8_t)(disk_word((uint32_t)k * (STRIP_BYTES / 4) + w) >> (8 * byte));
                bp ^= v;
                bq = gf_times2(bq) ^ v;
            }
            wp |= (uint32_t)bp << (8 * byte);
            wq |= (uint32_t)bq << (8 * byte);
        }
        if (hp[w] != wp || hq[w] != wq) { printf("word %u differs\n", w); return 1; }
    }
    return 0;
}
