// SPDX-License-Identifier: Apache-2.0. Module-lattice key generation in the NTT domain: t = A * s (mod q), one K x K matrix
// of polynomials per key, all products pointwise over the 256 NTT coefficients.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int K = 4;              // module rank
constexpr int N = 256;            // ring degree
constexpr int KEYS = 12288;

struct Ring {
    uint32_t q;                   // prime modulus, chosen by the parameter set at run time
};

__host__ __device__ inline uint32_t hash32(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

// Pseudo-random coefficient of the public matrix or the secret vector.
__host__ __device__ inline uint32_t coefficient(uint32_t stream, size_t index, uint32_t q) {
    return hash32((uint32_t)index * 2654435761u + stream * 0x9e3779b9u) % q;
}

__global__ void expand(uint32_t* out, size_t n, uint32_t stream, uint32_t q) {
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        out[i] = coefficient(stream, i, q);
}

__device__ __forceinline__ uint32_t reduce(uint64_t v, const Ring& ring) {
    return (uint32_t)(v % ring.q);
}

// A: [key][row][col][coef], s: [key][col][coef], t: [key][row][coef].
// A block owns one key; four neighbouring coefficients per thread.
__global__ void __launch_bounds__(N)
module_product(const uint4* __restrict__ A, const uint4* __restrict__ s,
               uint4* __restrict__ t, Ring ring) {
    constexpr int QUADS = N / 4;
    const int key = blockIdx.x;
    const int row = threadIdx.x / QUADS;
    const int quad = threadIdx.x % QUADS;
    const uint4* a = A + ((size_t)key * K + row) * K * QUADS + quad;
    const uint4* v = s + (size_t)key * K * QUADS + quad;
    uint4 x[K], y[K];
#pragma unroll
    for (int j = 0; j < K; ++j) {
        x[j] = a[j * QUADS];
        y[j] = v[j * QUADS];
    }
    uint4 acc = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < K; ++j) {
        acc.x = reduce(acc.x + (uint64_t)x[j].x * y[j].x, ring);
        acc.y = reduce(acc.y + (uint64_t)x[j].y * y[j].y, ring);
        acc.z = reduce(acc.z + (uint64_t)x[j].z * y[j].z, ring);
        acc.w = reduce(acc.w + (uint64_t)x[j].w * y[j].w, ring);
    }
    t[((size_t)key * K + row) * QUADS + quad] = acc;
}

int main() {
    Ring ring;
    ring.q = 8380417u;
    const size_t nA = (size_t)KEYS * K * K * N, nv = (size_t)KEYS * K * N;
    uint32_t *A, *s, *t;
    CK(cudaMalloc(&A, nA * 4));
    CK(cudaMalloc(&s, nv * 4));
    CK(cudaMalloc(&t, nv * 4));
    expand<<<2112, 256>>>(A, nA, 1u, ring.q);
    expand<<<2112, 256>>>(s, nv, 2u, ring.q);
    CK(cudaDeviceSynchronize());

    const int iters = 30;
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        module_product<<<KEYS, N>>>((const uint4*)A, (const uint4*)s, (uint4*)t, ring);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<uint32_t> got(nv);
    CK(cudaMemcpy(got.data(), t, nv * 4, cudaMemcpyDeviceToHost));
    for (int key = 0; key < KEYS; key += 97)
        for (int row = 0; row < K; ++row)
            for (int c = 0; c < N; ++c) {
                uint64_t sum = 0;
                for (int j = 0; j < K; ++j) {
                    const uint64_t a = coefficient(1u, (((size_t)key * K + row) * K + j) * N + c, ring.q);
                    const uint64_t b = coefficient(2u, ((size_t)key * K + j) * N + c, ring.q);
                    sum += a * b;
                }
                if (got[((size_t)key * K + row) * N + c] != sum % ring.q) {
                    printf("key %d row %d coefficient %d differs\n", key, row, c);
                    return 1;
                }
            }
    return 0;
}
