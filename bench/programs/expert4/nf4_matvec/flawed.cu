// SPDX-License-Identifier: Apache-2.0
// Batch-1 matrix-vector product with NF4-quantised weights (4-bit codes, one fp16 scale per 64 weights).
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                                              \
    do {                                                                                   \
        cudaError_t e_ = (x);                                                              \
        if (e_ != cudaSuccess) {                                                           \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

namespace nf4 {

constexpr float kCodes[16] = {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                              -0.09105004f, 0.0f,         0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                              0.44070983f,  0.56261700f,  0.72295684f,  1.0f};
__constant__ float c_codes[16] = {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f, -0.28444138f, -0.18477343f,
                                  -0.09105004f, 0.0f,         0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                  0.44070983f,  0.56261700f,  0.72295684f,  1.0f};

struct Silu {
    __device__ float operator()(float v) const { return v / (1.0f + __expf(-v)); }
};
struct Identity {
    __device__ float operator()(float v) const { return v; }
};

template <int K, int Rows>
struct Plan {
    static constexpr int Threads = 256, Pieces = K / (32 * 32);  // 16-byte pieces a lane and row
    static_assert(K % 1024 == 0, "");
};

// One 16-byte piece (32 codes) against its 32 activations.
template <class Book>
__device__ __forceinline__ float dot_piece(uint4 w, const float (&x)[32], const Book& book) {
    const uint32_t u[4] = {w.x, w.y, w.z, w.w};
    float s0 = 0.0f, s1 = 0.0f;
#pragma unroll
    for (int c = 0; c < 4; ++c)
#pragma unroll
        for (int n = 0; n < 8; n += 2) {
            s0 = fmaf(book[(u[c] >> (4 * n)) & 15u], x[c * 8 + n], s0);
            s1 = fmaf(book[(u[c] >> (4 * n + 4)) & 15u], x[c * 8 + n + 1], s1);
        }
    return s0 + s1;
}

template <int K, int Rows, class Act>
__global__ void __launch_bounds__(256, 2)
    nf4_matvec(const uint4* __restrict__ codes, const __half* __restrict__ scales, const float4* __restrict__ x,
               float* __restrict__ y, int n, Act act) {
    using P = Plan<K, Rows>;
    __shared__ float4 xs[P::Pieces * 8 * 32];
    __shared__ float lut[16];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    for (int f = threadIdx.x; f < K / 4; f += P::Threads) {
        const int piece = f >> 3;
        xs[((piece >> 5) * 8 + (f & 7)) * 32 + (piece & 31)] = x[f];
    }
    if (threadIdx.x < 16) lut[threadIdx.x] = c_codes[threadIdx.x];
    __syncthreads();
    const auto& book = c_codes;
    const int groups = n / Rows;
    const int stride = gridDim.x * (P::Threads / 32);
    int g = blockIdx.x * (P::Threads / 32) + warp;
    uint4 next[Rows];
    __half next_sc[Rows];
    auto prefetch = [&](int group, int p) {
#pragma unroll
        for (int r = 0; r < Rows; ++r) {
            const size_t row = size_t(group) * Rows + r;
            next[r] = __ldcs(codes + row * (K / 32) + p * 32 + lane);
            next_sc[r] = __ldg(scales + row * (K / 64) + p * 16 + (lane >> 1));
        }
    };
    if (g < groups) prefetch(g, 0);
    for (; g < groups; g += stride) {
        float acc[Rows] = {};
#pragma unroll 1
        for (int p = 0; p < P::Pieces; ++p) {
            uint4 w[Rows];
            float sc[Rows], xv[32];
#pragma unroll
            for (int r = 0; r < Rows; ++r) w[r] = next[r], sc[r] = __half2float(next_sc[r]);
            if (p + 1 < P::Pieces)
                prefetch(g, p + 1);
            else if (g + stride < groups)
                prefetch(g + stride, 0);
#pragma unroll
            for (int q = 0; q < 8; ++q) *reinterpret_cast<float4*>(xv + 4 * q) = xs[(p * 8 + q) * 32 + lane];
#pragma unroll
            for (int r = 0; r < Rows; ++r) acc[r] = fmaf(sc[r], dot_piece(w[r], xv, book), acc[r]);
        }
#pragma unroll
        for (int r = 0; r < Rows; ++r) {
#pragma unroll
            for (int o = 16; o; o >>= 1) acc[r] += __shfl_xor_sync(~0u, acc[r], o);
            if (lane == r) y[size_t(g) * Rows + r] = act(acc[r]);
        }
    }
}

}  // namespace nf4

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__global__ void fill_codes(uint32_t* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = mix(uint32_t(i));
}
__host__ __device__ inline __half scale_of(size_t i) { return __float2half(0.01f + 0.02f * unit(uint32_t(i) ^ 0x2468ace0u)); }
__global__ void fill_scales(__half* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = scale_of(i);
}

int main(int argc, char**) {
    constexpr int K = 4096, R = 4;
    const int n = 98304, iters = 60;
    const bool silu = argc > 1;
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<float> x(K);
    for (int i = 0; i < K; ++i) x[i] = unit(i ^ 0x77777777u) * 2.0f - 1.0f;
    uint4* d_w;
    __half* d_s;
    float *d_x, *d_y;
    const size_t words = size_t(n) * K / 8, nsc = size_t(n) * K / 64;
    CK(cudaMalloc(&d_w, words * 4));
    CK(cudaMalloc(&d_s, nsc * 2));
    CK(cudaMalloc(&d_x, K * 4));
    CK(cudaMalloc(&d_y, n * 4));
    CK(cudaMemcpy(d_x, x.data(), K * 4, cudaMemcpyHostToDevice));
    fill_codes<<<4096, 256>>>(reinterpret_cast<uint32_t*>(d_w), words);
    fill_scales<<<1024, 256>>>(d_s, nsc);
    CK(cudaGetLastError());
    auto step = [&] {
        if (silu)
            nf4::nf4_matvec<K, R><<<2 * sms, 256>>>(d_w, d_s, reinterpret_cast<float4*>(d_x), d_y, n, nf4::Silu{});
        else
            nf4::nf4_matvec<K, R><<<2 * sms, 256>>>(d_w, d_s, reinterpret_cast<float4*>(d_x), d_y, n, nf4::Identity{});
        CK(cudaGetLastError());
    };
    for (int i = 0; i < 5; ++i) step();
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::vector<float> y(n);
    CK(cudaMemcpy(y.data(), d_y, n * 4, cudaMemcpyDeviceToHost));
    for (int r = 0; r < n; r += 97) {
        double s = 0;
        for (int k = 0; k < K; ++k) {
            size_t e = size_t(r) * K + k;
            uint32_t code = (mix(uint32_t(e / 8)) >> (4 * (e & 7))) & 15u;
            s += double(nf4::kCodes[code]) * __half2float(scale_of(e / 64)) * x[k];
        }
        if (silu) s = s / (1.0 + std::exp(-s));
        if (!(std::fabs(s - y[r]) < 1e-3)) {
            std::printf("mismatch row %d: %g vs %g\n", r, y[r], s);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
