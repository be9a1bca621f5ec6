// SPDX-License-Identifier: Apache-2.0
// Double SHA-256 of an 80-byte header over a range of nonces; the second block of the header varies.
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

#define ROUND_CONSTANTS                                                                                     \
    {0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u, \
     0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u, \
     0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau, \
     0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u, \
     0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u, \
     0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u, \
     0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u, \
     0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u}
#define INITIAL_STATE \
    {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u}

struct State {
    uint32_t h[8];
};

__host__ __device__ __forceinline__ uint32_t rotr(uint32_t v, int s) {
#ifdef __CUDA_ARCH__
    return __funnelshift_r(v, v, s);
#else
    return v >> s | v << (32 - s);
#endif
}

__host__ __device__ __forceinline__ void compress(State& st, uint32_t (&w)[16]) {
    constexpr uint32_t k[64] = ROUND_CONSTANTS;
    uint32_t a = st.h[0], b = st.h[1], c = st.h[2], d = st.h[3], e = st.h[4], f = st.h[5], g = st.h[6], h = st.h[7];
#pragma unroll
    for (int t = 0; t < 64; ++t) {
        if (t >= 16) {
            const uint32_t x = w[(t + 1) & 15], y = w[(t + 14) & 15];
            w[t & 15] += (rotr(x, 7) ^ rotr(x, 18) ^ (x >> 3)) + w[(t + 9) & 15] + (rotr(y, 17) ^ rotr(y, 19) ^ (y >> 10));
        }
        const uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[t] + w[t & 15];
        const uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    st.h[0] += a;
    st.h[1] += b;
    st.h[2] += c;
    st.h[3] += d;
    st.h[4] += e;
    st.h[5] += f;
    st.h[6] += g;
    st.h[7] += h;
}

__host__ __device__ __forceinline__ uint32_t hash_nonce(const State& middle, uint32_t t0, uint32_t t1, uint32_t t2, uint32_t nonce) {
    uint32_t w[16] = {t0, t1, t2, nonce, 0x80000000u, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 640u};
    State s = middle;
    compress(s, w);
    uint32_t v[16] = {s.h[0], s.h[1], s.h[2], s.h[3], s.h[4], s.h[5], s.h[6], s.h[7], 0x80000000u, 0, 0, 0, 0, 0, 0, 256u};
    State r = {INITIAL_STATE};
    compress(r, v);
    return r.h[7];
}

__global__ void __launch_bounds__(256)
search_nonces(State middle, uint32_t t0, uint32_t t1, uint32_t t2, uint32_t first, uint32_t* __restrict__ tail) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    tail[i] = hash_nonce(middle, t0, t1, t2, first + i);
}

int main() {
    const uint32_t n = 1u << 22, first = 2000000000u;
    State middle = {INITIAL_STATE};
    uint32_t head[16];
    for (int i = 0; i < 16; ++i) head[i] = 0x01020304u * (uint32_t)(i + 1);
    compress(middle, head);

    uint32_t* d_tail;
    CUDA_CHECK(cudaMalloc(&d_tail, (size_t)n * sizeof(uint32_t)));
    const double us = time_us([&] { search_nonces<<<n / 256, 256>>>(middle, 0xdeadbeefu, 0x5f5e1000u, 0x1d00ffffu, first, d_tail); });

    std::vector<uint32_t> tail(n);
    CUDA_CHECK(cudaMemcpy(tail.data(), d_tail, (size_t)n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (uint32_t i = 0; i < n; i += 211)
        if (tail[i] != hash_nonce(middle, 0xdeadbeefu, 0x5f5e1000u, 0x1d00ffffu, first + i)) ok = false;
    uint64_t checksum = 0;
    for (uint32_t t : tail) checksum += t;
    std::printf("checksum: %llu\n", (unsigned long long)checksum);
    std::printf("us_per_iteration: %.3f\n", us);
    return ok ? 0 : 1;
}
