// SPDX-License-Identifier: Apache-2.0
// Point-wise channel mixing of a long activation tensor: out = relu(in * W^T + bias), 64 channels to 64, in half.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CUDA_ASSERT(x)                                                                 \
    do {                                                                               \
        cudaError_t c_ = (x);                                                          \
        if (c_ != cudaSuccess) {                                                       \
            std::fprintf(stderr, "feature_mix(%d): %s\n", __LINE__, cudaGetErrorString(c_)); \
            std::exit(2);                                                              \
        }                                                                              \
    } while (0)

constexpr int kC = 64;
constexpr int kPitch = kC + 8;             // halves per row in shared memory
constexpr int kWarps = 8;
constexpr int kWarpRows = 16;
constexpr int kPacks = kWarpRows * kC / 8 / 32;     // 16-byte packs per lane
constexpr int kBlockRows = kWarps * kWarpRows;

__device__ __forceinline__ void ldmatrix4(uint32_t r[4], const __half* p) {
    const uint32_t a = (uint32_t)__cvta_generic_to_shared(p);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(a) : "memory");
}
__device__ __forceinline__ void mma(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(kWarps * 32, 3)
mix_channels(const __half* __restrict__ in, const __half* __restrict__ weight, const float* __restrict__ bias,
             __half* __restrict__ out) {
    extern __shared__ __align__(16) __half shared[];
    __half* ws = shared;                                                   // kC rows of kPitch
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __half* rows = shared + kC * kPitch + warp * kWarpRows * kPitch;       // this warp's rows
    const size_t first = (size_t)blockIdx.x * kBlockRows + warp * kWarpRows;

    uint4 packs[kPacks];
    const uint4* src = (const uint4*)(in + first * kC);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) packs[i] = __ldcs(src + i * 32 + lane);
    for (int i = threadIdx.x; i < kC * kC / 8; i += kWarps * 32)
        *(uint4*)(ws + i / 8 * kPitch + i % 8 * 8) = ((const uint4*)weight)[i];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
        const int at = i * 32 + lane;
        *(uint4*)(rows + at / 8 * kPitch + at % 8 * 8) = packs[i];
    }
    __syncthreads();

    float acc[8][4] = {};
#pragma unroll
    for (int k = 0; k < kC; k += 16) {
        uint32_t a[4];
        ldmatrix4(a, rows + lane % 16 * kPitch + k + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < 8; n += 2) {
            uint32_t b[4];
            ldmatrix4(b, ws + (n * 8 + lane / 16 * 8 + lane % 8) * kPitch + k + lane / 8 % 2 * 8);
            mma(acc[n], a, b[0], b[1]);
            mma(acc[n + 1], a, b[2], b[3]);
        }
    }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; ++n) {
        const int col = n * 8 + lane % 4 * 2;
        const float2 add = *(const float2*)(bias + col);
#pragma unroll
        for (int h = 0; h < 2; ++h)
            *(__half2*)(rows + (h * 8 + lane / 4) * kPitch + col) =
                __floats2half2_rn(fmaxf(acc[n][2 * h] + add.x, 0.f), fmaxf(acc[n][2 * h + 1] + add.y, 0.f));
    }
    __syncwarp();
    uint4* dst = (uint4*)(out + first * kC);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
        const int at = i * 32 + lane;
        __stcs(dst + at, *(const uint4*)(rows + at / 8 * kPitch + at % 8 * 8));
    }
}

__host__ __device__ inline float feature(size_t i) {
    uint32_t h = (uint32_t)i * 0x9E3779B1u;
    h ^= h >> 16;
    h *= 0x7feb352du;
    h ^= h >> 15;
    return (float)((int)(h >> 21) - 1024) * (1.f / 1024.f);
}
__global__ void make_features(__half* in) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    in[i] = __float2half(feature(i));
}

int main() {
    const size_t rows = 1u << 20;
    std::vector<__half> weight(kC * kC), out(rows * kC);
    std::vector<float> bias(kC);
    for (int i = 0; i < kC * kC; ++i) weight[i] = __float2half(0.25f * std::sin(0.7f * i));
    for (int i = 0; i < kC; ++i) bias[i] = 0.1f * (i % 5) - 0.2f;
    __half *d_in, *d_out, *d_weight;
    float* d_bias;
    CUDA_ASSERT(cudaMalloc(&d_in, rows * kC * sizeof(__half)));
    CUDA_ASSERT(cudaMalloc(&d_out, rows * kC * sizeof(__half)));
    CUDA_ASSERT(cudaMalloc(&d_weight, weight.size() * sizeof(__half)));
    CUDA_ASSERT(cudaMalloc(&d_bias, bias.size() * sizeof(float)));
    CUDA_ASSERT(cudaMemcpy(d_weight, weight.data(), weight.size() * sizeof(__half), cudaMemcpyHostToDevice));
    CUDA_ASSERT(cudaMemcpy(d_bias, bias.data(), bias.size() * sizeof(float), cudaMemcpyHostToDevice));
    make_features<<<(unsigned)(rows * kC / 256), 256>>>(d_in);

    const int smem = (kC + kBlockRows) * kPitch * (int)sizeof(__half);
    CUDA_ASSERT(cudaFuncSetAttribute(mix_channels, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
    const unsigned grid = (unsigned)(rows / kBlockRows);
    cudaEvent_t t0, t1;
    CUDA_ASSERT(cudaEventCreate(&t0));
    CUDA_ASSERT(cudaEventCreate(&t1));
    for (int i = 0; i < 10; ++i) mix_channels<<<grid, kWarps * 32, smem>>>(d_in, d_weight, d_bias, d_out);
    const int rounds = 200;
    CUDA_ASSERT(cudaEventRecord(t0));
    for (int i = 0; i < rounds; ++i) mix_channels<<<grid, kWarps * 32, smem>>>(d_in, d_weight, d_bias, d_out);
    CUDA_ASSERT(cudaEventRecord(t1));
    CUDA_ASSERT(cudaEventSynchronize(t1));
    CUDA_ASSERT(cudaGetLastError());
    float ms = 0.f;
    CUDA_ASSERT(cudaEventElapsedTime(&ms, t0, t1));

    CUDA_ASSERT(cudaMemcpy(out.data(), d_out, out.size() * sizeof(__half), cudaMemcpyDeviceToHost));
    bool ok = true;
    for (size_t r = 3; r < rows; r += 1013)
        for (int n = 0; n < kC; ++n) {
            double v = bias[n];
            for (int k = 0; k < kC; ++k) v += (double)feature(r * kC + k) * __half2float(weight[n * kC + k]);
            if (!(std::fabs(std::fmax(v, 0.0) - __half2float(out[r * kC + n])) < 4e-3)) ok = false;
        }
    std::printf("us_per_iteration: %.3f\n", 1e3 * ms / rounds);
    return ok ? 0 : 1;
}
