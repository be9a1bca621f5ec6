// SPDX-License-Identifier: Apache-2.0
// Linkage-disequilibrium scan: for every variant, the number of later variants whose allele covariance with it exceeds a threshold.  Haplotypes are bit-packed, word-major
// ([word][variant]).  A block keeps four variants at a time and sweeps the later ones.
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x)                                                                    \
    do {                                                                         \
        cudaError_t c_ = (x);                                                    \
        if (c_ != cudaSuccess) {                                                 \
            fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(c_));  \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

constexpr int kVariants = 8192;
constexpr int kHaplotypes = 1024;
constexpr int kWords = kHaplotypes / 32;
constexpr int kPanel = 4;                         // variants held by a block at a time
constexpr int kPanels = kVariants / kPanel;
constexpr int kThreads = 512;
constexpr int kThreshold = kHaplotypes * 24;      // on n * n11 - n1 * n2
constexpr int kScans = 30;

__host__ __device__ inline uint32_t mixBits(uint32_t x) {
    x ^= x >> 17; x *= 0xed5ad4bbu;
    x ^= x >> 11; x *= 0xac4c1b51u;
    x ^= x >> 15; x *= 0x31848babu;
    x ^= x >> 14;
    return x;
}

// Variants come in families of 16 that share a founder pattern, diluted by noise.
__host__ __device__ inline uint32_t haplotypeWord(int word, int variant) {
    const uint32_t founder = mixBits((uint32_t)(variant / 16) * 64u + word + 17u);
    const uint32_t n0 = mixBits((uint32_t)variant * 64u + word + 0x1000000u);
    const uint32_t n1 = mixBits((uint32_t)variant * 64u + word + 0x2000000u);
    return (founder & (n0 | n1)) | (n0 & n1 & mixBits(n0 ^ 0x55u));
}

__global__ void makeHaplotypes(uint32_t* bits) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    bits[blockIdx.y * kVariants + v] = haplotypeWord(blockIdx.y, v);
}

__global__ void countAlleles(const uint32_t* __restrict__ bits, int* __restrict__ ones) {
    const int v = blockIdx.x * blockDim.x + threadIdx.x;
    int n = 0;
    for (int w = 0; w < kWords; ++w) n += __popc(bits[w * kVariants + v]);
    ones[v] = n;
}

__device__ inline bool linked(int both, int a, int b) {
    const int cov = kHaplotypes * both - a * b;
    return cov > kThreshold || cov < -kThreshold;
}

// Sweeps all variants after the panel's own and adds up the links of its four.
__device__ inline void sweepPanel(const uint32_t* __restrict__ bits, const int* __restrict__ ones,
                                  int* __restrict__ links, int panel, uint4* rows, int* tally) {
    const int first = panel * kPanel;
    if (threadIdx.x < kWords)
        rows[threadIdx.x] = *reinterpret_cast<const uint4*>(bits + threadIdx.x * kVariants + first);
    if (threadIdx.x < kPanel) tally[threadIdx.x] = 0;
    __syncthreads();

    const int4 mine = *reinterpret_cast<const int4*>(ones + first);
    int4 found = make_int4(0, 0, 0, 0);
    for (int j = first + 1 + threadIdx.x; j < kVariants; j += kThreads) {
        int4 both = make_int4(0, 0, 0, 0);
#pragma unroll 16
        for (int w = 0; w < kWords; ++w) {
            const uint32_t b = bits[w * kVariants + j];
            const uint4 r = rows[w];
            both.x += __popc(r.x & b);
            both.y += __popc(r.y & b);
            both.z += __popc(r.z & b);
            both.w += __popc(r.w & b);
        }
        const int theirs = ones[j];
        found.x += linked(both.x, mine.x, theirs);
        found.y += j > first + 1 && linked(both.y, mine.y, theirs);
        found.z += j > first + 2 && linked(both.z, mine.z, theirs);
        found.w += j > first + 3 && linked(both.w, mine.w, theirs);
    }

    found.x = __reduce_add_sync(0xFFFFFFFFu, found.x);
    found.y = __reduce_add_sync(0xFFFFFFFFu, found.y);
    found.z = __reduce_add_sync(0xFFFFFFFFu, found.z);
    found.w = __reduce_add_sync(0xFFFFFFFFu, found.w);
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(&tally[0], found.x);
        atomicAdd(&tally[1], found.y);
        atomicAdd(&tally[2], found.z);
        atomicAdd(&tally[3], found.w);
    }
    __syncthreads();
    if (threadIdx.x < kPanel) links[first + threadIdx.x] = tally[threadIdx.x];
}

__global__ void __launch_bounds__(kThreads)
scanLinks(const uint32_t* __restrict__ bits, const int* __restrict__ ones,
          int* __restrict__ links) {
    __shared__ uint4 rows[kWords];
    __shared__ int tally[kPanel];
    const int share = (kPanels + gridDim.x - 1) / gridDim.x;
    for (int k = 0; k < share; ++k) {
        const int panel = blockIdx.x * share + k;
        if (panel >= kPanels) break;
        sweepPanel(bits, ones, links, panel, rows, tally);
    }
}

int main() {
    uint32_t* bits;
    int *ones, *links;
    CK(cudaMalloc(&bits, sizeof(uint32_t) * kWords * kVariants));
    CK(cudaMalloc(&ones, sizeof(int) * kVariants));
    CK(cudaMalloc(&links, sizeof(int) * kVariants));
    makeHaplotypes<<<dim3(kVariants / 256, kWords), 256>>>(bits);
    countAlleles<<<kVariants / 256, 256>>>(bits, ones);
    CK(cudaGetLastError());

    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));
    scanLinks<<<sms, kThreads>>>(bits, ones, links);
    CK(cudaDeviceSynchronize());

    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    CK(cudaEventRecord(a));
    for (int s = 0; s < kScans; ++s) scanLinks<<<sms, kThreads>>>(bits, ones, links);
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    CK(cudaGetLastError());
    float ms = 0.0f;
    CK(cudaEventElapsedTime(&ms, a, b));
    printf("us_per_iteration: %.3f\n", ms * 1000.0f / kScans);

    std::vector<int> got(kVariants);
    CK(cudaMemcpy(got.data(), links, sizeof(int) * kVariants, cudaMemcpyDeviceToHost));
    std::vector<uint32_t> host((size_t)kVariants * kWords);
    std::vector<int> count(kVariants, 0);
    for (int v = 0; v < kVariants; ++v)
        for (int w = 0; w < kWords; ++w) {
            host[(size_t)v * kWords + w] = haplotypeWord(w, v);
            count[v] += __builtin_popcount(host[(size_t)v * kWords + w]);
        }
    int bad = 0;
    for (int v = 5; v < kVariants; v += 61) {
        int want = 0;
        for (int j = v + 1; j < kVariants; ++j) {
            int both = 0;
            for (int w = 0; w < kWords; ++w)
                both += __builtin_popcount(host[(size_t)v * kWords + w] & host[(size_t)j * kWords + w]);
            const int cov = kHaplotypes * both - count[v] * count[j];
            want += cov > kThreshold || cov < -kThreshold;
        }
        if (want != got[v]) ++bad;
    }
    if (bad) {
        printf("wrong link counts: %d\n", bad);
        return 1;
    }
    printf("ok\n");
    return 0;
}
