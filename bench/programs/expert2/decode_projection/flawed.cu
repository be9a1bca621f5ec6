// SPDX-License-Identifier: Apache-2.0
// Output projection of a decoder at generation time: 64 sequences, one token each.  out[64][N] = act[64][K] * W[N][K]^T + bias.  One CTA streams 128 rows
// of W through a ring in shared memory and multiplies on the tensor cores.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(2); } } while (0)

constexpr int M = 64, N = 16896, K = 8192;
constexpr int BN = 128, BK = 64, STAGES = 6, THREADS = 256;
constexpr int ACT_BYTES = M * BK * 2, W_BYTES = BN * BK * 2;
constexpr int STAGE_BYTES = ACT_BYTES + W_BYTES;
constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
constexpr int KT = K / BK;

__device__ __forceinline__ void cp_async16(uint32_t dst, const void* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], uint32_t addr) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void mma_16816(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Rows of 64 halves (128 bytes), 16-byte chunks XOR-swizzled by the row.
__device__ __forceinline__ uint32_t swz(int row, int chunk) { return row * 128 + ((chunk ^ (row & 7)) << 4); }

__device__ __forceinline__ void load_stage(uint32_t base, const half* act, const half* w, int n0, int kt) {
    const int chunk = threadIdx.x & 7, row0 = threadIdx.x >> 3;
    const size_t kofs = size_t(kt) * BK + chunk * 8;
#pragma unroll
    for (int r = row0; r < M; r += THREADS / 8) cp_async16(base + swz(r, chunk), act + size_t(r) * K + kofs);
#pragma unroll
    for (int r = row0; r < BN; r += THREADS / 8)
        cp_async16(base + ACT_BYTES + swz(r, chunk), w + size_t(n0 + r) * K + kofs);
}

__device__ __forceinline__ void multiply_stage(uint32_t base, int wm, int wn, int lane, float (&acc)[2][4][4]) {
#pragma unroll
    for (int ks = 0; ks < BK / 16; ++ks) {
        uint32_t a[2][4], b[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i)
            ldmatrix_x4(a[i], base + swz(wm + i * 16 + (lane & 15), ks * 2 + (lane >> 4)));
#pragma unroll
        for (int j = 0; j < 2; ++j)
            ldmatrix_x4(b[j], base + ACT_BYTES + swz(wn + j * 16 + (lane & 7) + ((lane >> 4) << 3), ks * 2 + ((lane >> 3) & 1)));
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) mma_16816(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
    }
}

__global__ void __launch_bounds__(THREADS, 1)
project_tokens(const half* __restrict__ act, const half* __restrict__ w, const float* __restrict__ bias, half* __restrict__ out) {
    extern __shared__ __align__(1024) unsigned char ring[];
    const uint32_t ring0 = static_cast<uint32_t>(__cvta_generic_to_shared(ring));
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int wm = (warp & 1) * 32, wn = (warp >> 1) * 32;
    const int n0 = blockIdx.x * BN;
    float acc[2][4][4] = {};

    for (int s = 0; s < STAGES - 1; ++s) {
        load_stage(ring0 + s * STAGE_BYTES, act, w, n0, s);
        cp_async_commit();
    }
    int slot = 0, fill = STAGES - 1;
    for (int kt = 0; kt < KT; ++kt) {
        if (kt + STAGES - 1 < KT) load_stage(ring0 + fill * STAGE_BYTES, act, w, n0, kt + STAGES - 1);
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        multiply_stage(ring0 + slot * STAGE_BYTES, wm, wn, lane, acc);
        __syncthreads();
        slot = slot + 1 == STAGES ? 0 : slot + 1;
        fill = fill + 1 == STAGES ? 0 : fill + 1;
    }

#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int row = wm + i * 16 + (lane >> 2), col = n0 + wn + j * 8 + (lane & 3) * 2;
            const float b0 = bias[col], b1 = bias[col + 1];
            *reinterpret_cast<half2*>(out + size_t(row) * N + col) = __floats2half2_rn(acc[i][j][0] + b0, acc[i][j][1] + b1);
            *reinterpret_cast<half2*>(out + size_t(row + 8) * N + col) = __floats2half2_rn(acc[i][j][2] + b0, acc[i][j][3] + b1);
        }
}

__device__ __forceinline__ float hash_unit(uint64_t i, uint32_t seed) {
    uint32_t x = uint32_t(i) * 2654435761u + uint32_t(i >> 32) * 40503u + seed;
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return float(x >> 8) * (1.0f / 16777216.0f) - 0.5f;
}
__global__ void fill_half(half* p, size_t n, uint32_t seed) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = __float2half(hash_unit(i, seed));
}
__global__ void fill_float(float* p, int n, uint32_t seed) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) p[i] = hash_unit(i, seed);
}

// One warp a sampled output element.
__global__ void reference_samples(const half* act, const half* w, const float* bias, const int* pick, float* ref, int count) {
    const int s = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (s >= count) return;
    const int m = pick[s] / N, n = pick[s] % N;
    float sum = 0.f;
    for (int k = lane; k < K; k += 32) sum += __half2float(act[size_t(m) * K + k]) * __half2float(w[size_t(n) * K + k]);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) ref[s] = sum + bias[n];
}

int main() {
    half *act, *w, *out;
    float* bias;
    CHECK(cudaMalloc(&act, size_t(M) * K * 2));
    CHECK(cudaMalloc(&w, size_t(N) * K * 2));
    CHECK(cudaMalloc(&out, size_t(M) * N * 2));
    CHECK(cudaMalloc(&bias, N * 4));
    fill_half<<<1024, 256>>>(act, size_t(M) * K, 11u);
    fill_half<<<2048, 256>>>(w, size_t(N) * K, 29u);
    fill_float<<<(N + 255) / 256, 256>>>(bias, N, 5u);
    CHECK(cudaFuncSetAttribute(project_tokens, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    auto step = [&] { project_tokens<<<N / BN, THREADS, SMEM_BYTES>>>(act, w, bias, out); };
    step();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CHECK(cudaEventCreate(&t0));
    CHECK(cudaEventCreate(&t1));
    const int iters = 100;
    CHECK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) step();
    CHECK(cudaEventRecord(t1));
    CHECK(cudaEventSynchronize(t1));
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.2f\n", ms * 1000.f / iters);

    const int samples = 4096;
    std::vector<int> pick(samples);
    for (int i = 0; i < samples; ++i) pick[i] = int((uint64_t(i) * 2654435761ull + 12345) % (uint64_t(M) * N));
    int* dpick; float* dref;
    CHECK(cudaMalloc(&dpick, samples * 4));
    CHECK(cudaMalloc(&dref, samples * 4));
    CHECK(cudaMemcpy(dpick, pick.data(), samples * 4, cudaMemcpyHostToDevice));
    reference_samples<<<samples / 8, 256>>>(act, w, bias, dpick, dref, samples);
    std::vector<float> ref(samples);
    std::vector<half> got(size_t(M) * N);
    CHECK(cudaMemcpy(ref.data(), dref, samples * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got.data(), out, got.size() * 2, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int i = 0; i < samples; ++i)
        if (!(std::fabs(__half2float(got[pick[i]]) - ref[i]) <= 0.03f + 0.02f * std::fabs(ref[i]))) ++bad;
    if (bad) printf("mismatches: %d\n", bad);
    return bad ? 1 : 0;
}
