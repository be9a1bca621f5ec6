// SPDX-License-Identifier: Apache-2.0
// Keccak-f[1600] digests (SHA3-256) of a batch of short fixed-size records.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_CHECK(call)                                                                   \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

template <class Launch>
static double time_us(Launch launch, int warm = 20, int reps = 50) {
    for (int i = 0; i < warm; ++i) launch();
    cudaEvent_t begin, end;
    CUDA_CHECK(cudaEventCreate(&begin));
    CUDA_CHECK(cudaEventCreate(&end));
    CUDA_CHECK(cudaEventRecord(begin));
    for (int i = 0; i < reps; ++i) launch();
    CUDA_CHECK(cudaEventRecord(end));
    CUDA_CHECK(cudaEventSynchronize(end));
    CUDA_CHECK(cudaGetLastError());
    float ms = 0.f;
    CUDA_CHECK(cudaEventElapsedTime(&ms, begin, end));
    CUDA_CHECK(cudaEventDestroy(begin));
    CUDA_CHECK(cudaEventDestroy(end));
    return 1e3 * ms / reps;
}

constexpr int kRecordWords = 8;   // 64 bytes a record
constexpr int kDigestWords = 4;
constexpr int kRate = 17;         // 136 bytes
constexpr int kThreads = 256;

static const uint64_t kRoundHost[24] = {
    0x0000000000000001ull, 0x0000000000008082ull, 0x800000000000808aull, 0x8000000080008000ull,
    0x000000000000808bull, 0x0000000080000001ull, 0x8000000080008081ull, 0x8000000000008009ull,
    0x000000000000008aull, 0x0000000000000088ull, 0x0000000080008009ull, 0x000000008000000aull,
    0x000000008000808bull, 0x800000000000008bull, 0x8000000000008089ull, 0x8000000000008003ull,
    0x8000000000008002ull, 0x8000000000000080ull, 0x000000000000800aull, 0x800000008000000aull,
    0x8000000080008081ull, 0x8000000000008080ull, 0x0000000080000001ull, 0x8000000080008008ull};
__constant__ uint64_t kRound[24];

template <int R>
__device__ __forceinline__ uint64_t rotl(uint64_t v) {
    return R == 0 ? v : (v << R) | (v >> ((64 - R) & 63));
}

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
    b[0] = a[0];             b[10] = rotl<1>(a[1]);   b[20] = rotl<62>(a[2]);  b[5] = rotl<28>(a[3]);   b[15] = rotl<27>(a[4]);
    b[16] = rotl<36>(a[5]);  b[1] = rotl<44>(a[6]);   b[11] = rotl<6>(a[7]);   b[21] = rotl<55>(a[8]);  b[6] = rotl<20>(a[9]);
    b[7] = rotl<3>(a[10]);   b[17] = rotl<10>(a[11]); b[2] = rotl<43>(a[12]);  b[12] = rotl<25>(a[13]); b[22] = rotl<39>(a[14]);
    b[23] = rotl<41>(a[15]); b[8] = rotl<45>(a[16]);  b[18] = rotl<15>(a[17]); b[3] = rotl<21>(a[18]);  b[13] = rotl<8>(a[19]);
    b[14] = rotl<18>(a[20]); b[24] = rotl<2>(a[21]);  b[9] = rotl<61>(a[22]);  b[19] = rotl<56>(a[23]); b[4] = rotl<14>(a[24]);
#pragma unroll
    for (int y = 0; y < 25; y += 5)
#pragma unroll
        for (int x = 0; x < 5; ++x) a[y + x] = b[y + x] ^ (~b[y + (x + 1) % 5] & b[y + (x + 2) % 5]);
    a[0] ^= rc;
}

__global__ void __launch_bounds__(kThreads, 2)
digest_records(const uint64_t* __restrict__ records, uint64_t* __restrict__ digests, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uint64_t a[25];
#pragma unroll
    for (int w = 0; w < 25; ++w) a[w] = w < kRecordWords ? records[(size_t)w * n + i] : 0ull;
    a[kRecordWords] = 0x06ull;
    a[kRate - 1] ^= 0x8000000000000000ull;
#pragma unroll 2
    for (int r = 0; r < 24; ++r) keccak_round(a, kRound[r]);
#pragma unroll
    for (int w = 0; w < kDigestWords; ++w) digests[(size_t)w * n + i] = a[w];
}

static void reference(const uint64_t* rec, uint64_t* out) {
    uint64_t a[25] = {};
    for (int w = 0; w < kRecordWords; ++w) a[w] = rec[w];
    a[kRecordWords] ^= 6;
    a[kRate - 1] ^= 1ull << 63;
    for (int r = 0; r < 24; ++r) {
        uint64_t c[5], d;
        for (int x = 0; x < 5; ++x) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
        for (int x = 0; x < 5; ++x) {
            const uint64_t e = c[(x + 1) % 5];
            d = c[(x + 4) % 5] ^ (e << 1 | e >> 63);
            for (int y = 0; y < 25; y += 5) a[x + y] ^= d;
        }
        int x = 1, y = 0;
        uint64_t cur = a[1];
        for (int t = 0; t < 24; ++t) {
            const int nx = y, ny = (2 * x + 3 * y) % 5, rot = ((t + 1) * (t + 2) / 2) % 64;
            x = nx;
            y = ny;
            const uint64_t keep = a[x + 5 * y];
            a[x + 5 * y] = rot ? (cur << rot | cur >> (64 - rot)) : cur;
            cur = keep;
        }
        for (int yy = 0; yy < 25; yy += 5) {
            uint64_t t[5];
            for (int k = 0; k < 5; ++k) t[k] = a[yy + k];
            for (int k = 0; k < 5; ++k) a[yy + k] = t[k] ^ (~t[(k + 1) % 5] & t[(k + 2) % 5]);
        }
        a[0] ^= kRoundHost[r];
    }
    for (int w = 0; w < kDigestWords; ++w) out[w] = a[w];
}

int main() {
    const int n = 1 << 19;
    std::vector<uint64_t> records((size_t)n * kRecordWords), digests((size_t)n * kDigestWords);
    uint64_t s = 88172645463325252ull;
    for (auto& r : records) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        r = s;
    }
    uint64_t *d_rec, *d_dig;
    CUDA_CHECK(cudaMalloc(&d_rec, records.size() * sizeof(uint64_t)));
    CUDA_CHECK(cudaMalloc(&d_dig, digests.size() * sizeof(uint64_t)));
    CUDA_CHECK(cudaMemcpy(d_rec, records.data(), records.size() * sizeof(uint64_t), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpyToSymbol(kRound, kRoundHost, sizeof kRoundHost));

    const double us = time_us([&] { digest_records<<<(n + kThreads - 1) / kThreads, kThreads>>>(d_rec, d_dig, n); });

    CUDA_CHECK(cudaMemcpy(digests.data(), d_dig, digests.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (int i = 3; i < n; i += 1013) {
        uint64_t rec[kRecordWords], want[kDigestWords];
        for (int w = 0; w < kRecordWords; ++w) rec[w] = records[(size_t)w * n + i];
        reference(rec, want);
        for (int w = 0; w < kDigestWords; ++w) ok = ok && want[w] == digests[(size_t)w * n + i];
    }
    uint64_t checksum = 0;
    for (uint64_t d : digests) checksum = checksum * 31 + d;
    std::printf("checksum: %016llx\n", (unsigned long long)checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
