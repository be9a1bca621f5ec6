// SPDX-License-Identifier: Apache-2.0
// Incoherence processing of activations before quantisation.
// Each row of 4096 activations is mixed by four rounds of "flip signs, then Hadamard".
// A row lives in the registers of one block, 16 values per thread; the 4096 = 16^3
// transform takes three radix-16 passes, with two exchanges through shared memory. Odd
// rounds run the digits in reverse, so that the rows need not be reordered in between.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int LEN = 4096;
constexpr int THREADS = 256;
constexpr int RADIX = 16;
constexpr int ROUNDS = 4;
constexpr int ROWS = 8448;

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
__host__ __device__ inline float activation(unsigned i) { return (mix(i) >> 8) * (1.0f / 8388608.0f) - 1.0f; }

__global__ void fill_rows(float* x, size_t n) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] = activation((unsigned)i);
}

// Position of element r of thread t while the top, middle or bottom digit is in registers.
__host__ __device__ __forceinline__ int at_top(int t, int r) { return r * 256 + t; }
__host__ __device__ __forceinline__ int at_mid(int t, int r) { return (t >> 4) * 256 + r * 16 + (t & 15); }
__host__ __device__ __forceinline__ int at_low(int t, int r) { return t * 16 + r; }

// Shared-memory word of row position n.
__device__ __forceinline__ int swizzle(int n) { return n ^ ((n >> 8) & 15); }

__device__ __forceinline__ void butterfly16(float (&v)[RADIX]) {
#pragma unroll
    for (int h = 1; h < RADIX; h *= 2)
#pragma unroll
        for (int i = 0; i < RADIX; ++i)
            if (!(i & h)) {
                const float a = v[i], b = v[i | h];
                v[i] = a + b;
                v[i | h] = a - b;
            }
}

// Signs of a thread's 16 values, one bit each; the scale keeps the transform orthonormal.
__device__ __forceinline__ void flip_signs(float (&v)[RADIX], unsigned bits) {
#pragma unroll
    for (int r = 0; r < RADIX; ++r)
        v[r] = __uint_as_float(__float_as_uint(v[r] * (1.0f / 64.0f)) ^ (((bits >> r) & 1u) << 31));
}

template <int (*FROM)(int, int), int (*TO)(int, int)>
__device__ __forceinline__ void exchange(float (&v)[RADIX], float* row) {
#pragma unroll
    for (int r = 0; r < RADIX; ++r) row[swizzle(FROM(threadIdx.x, r))] = v[r];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < RADIX; ++r) v[r] = row[swizzle(TO(threadIdx.x, r))];
}

__global__ void __launch_bounds__(THREADS, 3)
mix_rows(const float* __restrict__ in, float* __restrict__ out, const unsigned short* __restrict__ signs) {
    __shared__ float row[LEN];
    const float* src = in + (size_t)blockIdx.x * LEN;
    float* dst = out + (size_t)blockIdx.x * LEN;
    float v[RADIX];
#pragma unroll
    for (int r = 0; r < RADIX; ++r) v[r] = __ldcs(src + at_top(threadIdx.x, r));

#pragma unroll 1
    for (int round = 0; round < ROUNDS; round += 2) {
        flip_signs(v, signs[round * THREADS + threadIdx.x]);
        butterfly16(v);
        exchange<at_top, at_mid>(v, row);
        butterfly16(v);
        exchange<at_mid, at_low>(v, row);
        butterfly16(v);

        flip_signs(v, signs[(round + 1) * THREADS + threadIdx.x]);
        butterfly16(v);
        exchange<at_low, at_mid>(v, row);
        butterfly16(v);
        exchange<at_mid, at_top>(v, row);
        butterfly16(v);
    }
#pragma unroll
    for (int r = 0; r < RADIX; ++r) __stcs(dst + at_top(threadIdx.x, r), v[r]);
}

int main() {
    const int iterations = 40;
    std::vector<unsigned short> signs(ROUNDS * THREADS);
    for (size_t i = 0; i < signs.size(); ++i) signs[i] = (unsigned short)mix((unsigned)i + 4242u);

    const size_t n = (size_t)ROWS * LEN;
    float *in, *out; unsigned short* d_signs;
    CK(cudaMalloc(&in, n * sizeof(float)));
    CK(cudaMalloc(&out, n * sizeof(float)));
    CK(cudaMalloc(&d_signs, signs.size() * sizeof(unsigned short)));
    CK(cudaMemcpy(d_signs, signs.data(), signs.size() * sizeof(unsigned short), cudaMemcpyHostToDevice));
    CK(cudaMemset(out, 0, n * sizeof(float)));
    fill_rows<<<(unsigned)(n / 256), 256>>>(in, n);
    CK(cudaGetLastError());

    mix_rows<<<ROWS, THREADS>>>(in, out, d_signs);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) mix_rows<<<ROWS, THREADS>>>(in, out, d_signs);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    int bad = 0;
    std::vector<float> got(LEN);
    std::vector<double> v(LEN);
    for (int q = 0; q < ROWS; q += 703) {
        CK(cudaMemcpy(got.data(), out + (size_t)q * LEN, LEN * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < LEN; ++i) v[i] = activation((unsigned)(q * LEN + i));
        for (int round = 0; round < ROUNDS; ++round) {
            for (int t = 0; t < THREADS; ++t)
                for (int r = 0; r < RADIX; ++r) {
                    const int i = round % 2 ? at_low(t, r) : at_top(t, r);
                    v[i] *= ((signs[round * THREADS + t] >> r) & 1) ? -1.0 / 64 : 1.0 / 64;
                }
            for (int h = 1; h < LEN; h *= 2)
                for (int i = 0; i < LEN; ++i)
                    if (!(i & h)) { const double a = v[i], b = v[i | h]; v[i] = a + b; v[i | h] = a - b; }
        }
        for (int i = 0; i < LEN; ++i)
            if (!(std::fabs(got[i] - v[i]) <= 1e-3 * std::fabs(v[i]) + 1e-4)) ++bad;
    }
    std::printf("values out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
