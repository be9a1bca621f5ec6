// SPDX-License-Identifier: Apache-2.0
// Relaxation step of all-pairs shortest (or widest) paths: a matrix product over a path semiring.
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

namespace paths {

struct Shortest {
    static __host__ __device__ __forceinline__ float zero() { return 3.0e38f; }
    static __host__ __device__ __forceinline__ float times(float a, float b) { return a + b; }
    static __host__ __device__ __forceinline__ float plus(float a, float b) { return fminf(a, b); }
};
struct Widest {
    static __host__ __device__ __forceinline__ float zero() { return 0.0f; }
    static __host__ __device__ __forceinline__ float times(float a, float b) { return fminf(a, b); }
    static __host__ __device__ __forceinline__ float plus(float a, float b) { return fmaxf(a, b); }
};

template <int BM_, int BN_, int BK_>
struct Tile {
    static constexpr int BM = BM_, BN = BN_, BK = BK_, Stages = 3;
    static constexpr int Threads = (BM / 8) * (BN / 8);
    struct Smem {
        float a[Stages][BK][BM];
        float b[Stages][BK][BN];
    };
};

__device__ __forceinline__ void cp16(float* dst, const float* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(uint32_t(__cvta_generic_to_shared(dst))), "l"(src));
}

template <int Cols, int BK, int Threads>
__device__ __forceinline__ void fetch(float (&dst)[BK][Cols], const float* __restrict__ src, int ld) {
#pragma unroll
    for (int i = 0; i < BK * Cols / 4 / Threads; ++i) {
        int c = threadIdx.x + i * Threads, r = c / (Cols / 4), q = c % (Cols / 4);
        cp16(&dst[r][q * 4], src + size_t(r) * ld + q * 4);
    }
}

// C[i][j] = plus(C[i][j], plus_k times(At[k][i], B[k][j]))
template <class R, class T>
__global__ void __launch_bounds__(T::Threads, 2)
    semiring_gemm(const float* __restrict__ At, const float* __restrict__ B, const float* __restrict__ Cin,
                  float* __restrict__ Cout, int M, int N, int K) {
    extern __shared__ __align__(16) uint8_t raw[];
    auto& sm = *reinterpret_cast<typename T::Smem*>(raw);
    const int row0 = blockIdx.y * T::BM, col0 = blockIdx.x * T::BN;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int ty = (warp >> 1) * 4 + (lane >> 3), tx = (warp & 1) * 8 + (lane & 7);
    float acc[8][8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) acc[i][j] = R::zero();

    const int tiles = K / T::BK;
    auto load = [&](int kt) {
        const int s = kt % T::Stages;
        fetch<T::BM, T::BK, T::Threads>(sm.a[s], At + size_t(kt) * T::BK * M + row0, M);
        fetch<T::BN, T::BK, T::Threads>(sm.b[s], B + size_t(kt) * T::BK * N + col0, N);
    };
#pragma unroll
    for (int i = 0; i < T::Stages - 1; ++i) {
        load(i);
        asm volatile("cp.async.commit_group;\n");
    }
    for (int kt = 0; kt < tiles; ++kt) {
        asm volatile("cp.async.wait_group %0;\n" ::"n"(T::Stages - 2));
        __syncthreads();
        if (kt + T::Stages - 1 < tiles) load(kt + T::Stages - 1);
        asm volatile("cp.async.commit_group;\n");
        const int s = kt % T::Stages;
#pragma unroll 4
        for (int k = 0; k < T::BK; ++k) {
            float a[8], b[8];
            *reinterpret_cast<float4*>(a) = *reinterpret_cast<const float4*>(&sm.a[s][k][ty * 4]);
            *reinterpret_cast<float4*>(a + 4) = *reinterpret_cast<const float4*>(&sm.a[s][k][T::BM / 2 + ty * 4]);
            *reinterpret_cast<float4*>(b) = *reinterpret_cast<const float4*>(&sm.b[s][k][tx * 4]);
            *reinterpret_cast<float4*>(b + 4) = *reinterpret_cast<const float4*>(&sm.b[s][k][T::BN / 2 + tx * 4]);
#pragma unroll
            for (int i = 0; i < 8; ++i)
#pragma unroll
                for (int j = 0; j < 8; ++j) acc[i][j] = R::plus(acc[i][j], R::times(a[i], b[j]));
        }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int r = row0 + (i >> 2) * (T::BM / 2) + ty * 4 + (i & 3);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const size_t o = size_t(r) * N + col0 + h * (T::BN / 2) + tx * 4;
            float4 c = *reinterpret_cast<const float4*>(Cin + o);
            c.x = R::plus(c.x, acc[i][h * 4]);
            c.y = R::plus(c.y, acc[i][h * 4 + 1]);
            c.z = R::plus(c.z, acc[i][h * 4 + 2]);
            c.w = R::plus(c.w, acc[i][h * 4 + 3]);
            *reinterpret_cast<float4*>(Cout + o) = c;
        }
    }
}

template <class R>
void relax(const float* At, const float* B, const float* Cin, float* Cout, int M, int N, int K) {
    using T = Tile<128, 128, 16>;
    CK(cudaFuncSetAttribute(semiring_gemm<R, T>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(typename T::Smem))));
    semiring_gemm<R, T><<<dim3(N / T::BN, M / T::BM), T::Threads, sizeof(typename T::Smem)>>>(At, B, Cin, Cout, M, N, K);
    CK(cudaGetLastError());
}

}  // namespace paths

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

template <class R>
float reference(const std::vector<float>& At, const std::vector<float>& B, const std::vector<float>& C, int M, int N, int K,
                int r, int c) {
    float v = R::zero();
    for (int k = 0; k < K; ++k) v = R::plus(v, R::times(At[size_t(k) * M + r], B[size_t(k) * N + c]));
    return R::plus(C[size_t(r) * N + c], v);
}

int main(int argc, char**) {
    const int M = 33 * 128, N = 32 * 128, K = 512, iters = 50;
    const bool widest = argc > 1;
    std::vector<float> At(size_t(K) * M), B(size_t(K) * N), C(size_t(M) * N);
    for (size_t i = 0; i < At.size(); ++i) At[i] = unit(uint32_t(i)) * 100.0f;
    for (size_t i = 0; i < B.size(); ++i) B[i] = unit(uint32_t(i) ^ 0xABCDEF01u) * 100.0f;
    for (size_t i = 0; i < C.size(); ++i) C[i] = unit(uint32_t(i) ^ 0x13572468u) * 40.0f;
    float *dA, *dB, *dC, *dD;
    CK(cudaMalloc(&dA, At.size() * 4));
    CK(cudaMalloc(&dB, B.size() * 4));
    CK(cudaMalloc(&dC, C.size() * 4));
    CK(cudaMalloc(&dD, C.size() * 4));
    CK(cudaMemcpy(dA, At.data(), At.size() * 4, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(dB, B.data(), B.size() * 4, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(dC, C.data(), C.size() * 4, cudaMemcpyHostToDevice));
    auto step = [&] {
        if (widest)
            paths::relax<paths::Widest>(dA, dB, dC, dD, M, N, K);
        else
            paths::relax<paths::Shortest>(dA, dB, dC, dD, M, N, K);
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
    std::vector<float> D(C.size());
    CK(cudaMemcpy(D.data(), dD, D.size() * 4, cudaMemcpyDeviceToHost));
    for (uint32_t t = 0; t < 5000; ++t) {
        int r = int(mix(t) % M), c = int(mix(t + 99999u) % N);
        float ref = widest ? reference<paths::Widest>(At, B, C, M, N, K, r, c) : reference<paths::Shortest>(At, B, C, M, N, K, r, c);
        if (!(std::fabs(ref - D[size_t(r) * N + c]) <= 1e-5f * std::fabs(ref))) {
            std::printf("mismatch (%d,%d): %g vs %g\n", r, c, D[size_t(r) * N + c], ref);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
