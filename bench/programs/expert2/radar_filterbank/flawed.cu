// SPDX-License-Identifier: Apache-2.0
// Pulse compression against a bank of matched filters.  Every range snapshot (1024 taps) is correlated with 2048 Doppler-shifted replicas of the pulse;
// the correlation matrix is the product bank[F][L] * snap[T][L]^T in fp16 with
// fp32 accumulation, scaled by the processing gain and stored as fp16.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define CUDA_OK(call) do { cudaError_t err_ = (call); if (err_ != cudaSuccess) { \
    fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(err_)); exit(2); } } while (0)

namespace cfg {
constexpr int FILTERS = 2048, SNAPS = 16384, TAPS = 1024;
constexpr int TILE_F = 128, TILE_T = 128, TILE_L = 64;
constexpr int STAGES = 3, THREADS = 256;
constexpr int A_BYTES = TILE_F * TILE_L * 2, B_BYTES = TILE_T * TILE_L * 2;
constexpr int STAGE = A_BYTES + B_BYTES, SMEM = STAGES * STAGE;
constexpr float GAIN = 0.25f;
}
using namespace cfg;

__device__ __forceinline__ void async_copy16(uint32_t smem, const half* gmem) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(smem), "l"(gmem) : "memory");
}
__device__ __forceinline__ void async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int n> __device__ __forceinline__ void async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }

__device__ __forceinline__ void load_frag(uint32_t (&r)[4], uint32_t addr) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A tile row is 64 taps = eight 16-byte chunks; chunks are permuted by XOR so
// that rows of a fragment are spread over the shared memory.
__device__ __forceinline__ uint32_t tile_offset(int row, int chunk) {
    const int phys = chunk ^ ((row >> 2) & 7);
    return uint32_t(row * 128 + phys * 16);
}

__device__ __forceinline__ void fetch(uint32_t stage, const half* bank, const half* snap, int f0, int t0, int l0) {
    const int chunk = threadIdx.x & 7;
#pragma unroll
    for (int r = threadIdx.x >> 3; r < TILE_F; r += THREADS / 8)
        async_copy16(stage + tile_offset(r, chunk), bank + size_t(f0 + r) * TAPS + l0 + chunk * 8);
#pragma unroll
    for (int r = threadIdx.x >> 3; r < TILE_T; r += THREADS / 8)
        async_copy16(stage + A_BYTES + tile_offset(r, chunk), snap + size_t(t0 + r) * TAPS + l0 + chunk * 8);
}

__global__ void __launch_bounds__(THREADS, 2)
correlate_bank(const half* __restrict__ bank, const half* __restrict__ snap, half* __restrict__ corr) {
    extern __shared__ __align__(1024) unsigned char smem[];
    const uint32_t s0 = uint32_t(__cvta_generic_to_shared(smem));
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int wf = (warp & 1) * 64, wt = (warp >> 1) * 32;
    const int f0 = blockIdx.x * TILE_F, t0 = blockIdx.y * TILE_T;
    float acc[4][4][4] = {};

#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        fetch(s0 + s * STAGE, bank, snap, f0, t0, s * TILE_L);
        async_commit();
    }
    int cur = 0, nxt = STAGES - 1;
    for (int l = 0; l < TAPS / TILE_L; ++l) {
        async_wait<STAGES - 2>();
        __syncthreads();
        if (l + STAGES - 1 < TAPS / TILE_L) fetch(s0 + nxt * STAGE, bank, snap, f0, t0, (l + STAGES - 1) * TILE_L);
        async_commit();

        const uint32_t sa = s0 + cur * STAGE, sb = sa + A_BYTES;
#pragma unroll
        for (int k = 0; k < TILE_L / 16; ++k) {
            uint32_t a[4][4], b[2][4];
#pragma unroll
            for (int j = 0; j < 2; ++j)
                load_frag(b[j], sb + tile_offset(wt + j * 16 + (lane & 7) + ((lane >> 4) << 3), 2 * k + ((lane >> 3) & 1)));
#pragma unroll
            for (int i = 0; i < 4; ++i) load_frag(a[i], sa + tile_offset(wf + i * 16 + (lane & 15), 2 * k + (lane >> 4)));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) mma(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
        }
        cur = cur + 1 == STAGES ? 0 : cur + 1;
        nxt = nxt + 1 == STAGES ? 0 : nxt + 1;
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const size_t f = f0 + wf + i * 16 + (lane >> 2);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int t = t0 + wt + j * 8 + (lane & 3) * 2;
            *reinterpret_cast<half2*>(corr + f * SNAPS + t) = __floats2half2_rn(acc[i][j][0] * GAIN, acc[i][j][1] * GAIN);
            *reinterpret_cast<half2*>(corr + (f + 8) * SNAPS + t) = __floats2half2_rn(acc[i][j][2] * GAIN, acc[i][j][3] * GAIN);
        }
    }
}

// Replicas: a linear chirp under a frequency shift that grows with the filter.
__global__ void make_bank(half* bank) {
    const int f = blockIdx.x;
    for (int l = threadIdx.x; l < TAPS; l += blockDim.x) {
        const float t = float(l) / TAPS;
        bank[size_t(f) * TAPS + l] = __float2half(cosf(6.2831853f * (40.f * t * t + 0.05f * f * t)));
    }
}
__global__ void make_snapshots(half* snap) {
    const uint32_t t = blockIdx.x;
    for (uint32_t l = threadIdx.x; l < TAPS; l += blockDim.x) {
        uint32_t x = (t * TAPS + l) * 747796405u + 2891336453u;
        x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
        x = (x >> 22) ^ x;
        snap[size_t(t) * TAPS + l] = __float2half(float(x & 0xffff) / 32768.f - 1.f);
    }
}
__global__ void direct_correlation(const half* bank, const half* snap, const int2* where, float* ref, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.f;
    for (int l = 0; l < TAPS; ++l)
        s += __half2float(bank[size_t(where[i].x) * TAPS + l]) * __half2float(snap[size_t(where[i].y) * TAPS + l]);
    ref[i] = s * GAIN;
}

int main() {
    half *bank, *snap, *corr;
    CUDA_OK(cudaMalloc(&bank, sizeof(half) * FILTERS * TAPS));
    CUDA_OK(cudaMalloc(&snap, sizeof(half) * SNAPS * TAPS));
    CUDA_OK(cudaMalloc(&corr, sizeof(half) * FILTERS * SNAPS));
    make_bank<<<FILTERS, 256>>>(bank);
    make_snapshots<<<SNAPS, 256>>>(snap);
    CUDA_OK(cudaFuncSetAttribute(correlate_bank, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));

    const dim3 grid(FILTERS / TILE_F, SNAPS / TILE_T);
    correlate_bank<<<grid, THREADS, SMEM>>>(bank, snap, corr);
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());

    cudaEvent_t begin, end;
    CUDA_OK(cudaEventCreate(&begin));
    CUDA_OK(cudaEventCreate(&end));
    constexpr int REPEATS = 60;
    CUDA_OK(cudaEventRecord(begin));
    for (int r = 0; r < REPEATS; ++r) correlate_bank<<<grid, THREADS, SMEM>>>(bank, snap, corr);
    CUDA_OK(cudaEventRecord(end));
    CUDA_OK(cudaEventSynchronize(end));
    float ms;
    CUDA_OK(cudaEventElapsedTime(&ms, begin, end));
    printf("us_per_iteration: %.2f\n", 1e3f * ms / REPEATS);

    constexpr int SAMPLES = 4096;
    std::vector<int2> where(SAMPLES);
    for (int i = 0; i < SAMPLES; ++i) where[i] = make_int2((i * 1237 + 5) % FILTERS, int((i * 7919LL + 11) % SNAPS));
    int2* dwhere; float* dref;
    CUDA_OK(cudaMalloc(&dwhere, SAMPLES * sizeof(int2)));
    CUDA_OK(cudaMalloc(&dref, SAMPLES * sizeof(float)));
    CUDA_OK(cudaMemcpy(dwhere, where.data(), SAMPLES * sizeof(int2), cudaMemcpyHostToDevice));
    direct_correlation<<<SAMPLES / 128, 128>>>(bank, snap, dwhere, dref, SAMPLES);
    std::vector<float> ref(SAMPLES);
    std::vector<half> got(size_t(FILTERS) * SNAPS);
    CUDA_OK(cudaMemcpy(ref.data(), dref, SAMPLES * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(got.data(), corr, got.size() * sizeof(half), cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < SAMPLES; ++i) {
        const float g = __half2float(got[size_t(where[i].x) * SNAPS + where[i].y]);
        if (!(std::fabs(g - ref[i]) <= 0.02f + 0.02f * std::fabs(ref[i]))) ++wrong;
    }
    if (wrong) printf("wrong samples: %d of %d\n", wrong, SAMPLES);
    return wrong ? 1 : 0;
}
