// SPDX-License-Identifier: Apache-2.0. Ambient-noise interferometry: covariance matrices of a large seismic array, one per
// frequency band, C_b = X_b X_b^T over one-bit-like normalised windows in bf16.
// 128x128 tiles of stations by mma.sync, operands through a cp.async ring in
// swizzled shared memory (rows of 64 bytes, 16-byte chunks permuted) and ldmatrix.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int STATIONS = 512, WINDOWS = 2048, BANDS = 66;
constexpr int BM = 128, BK = 32, STAGES = 4;
constexpr int CHUNKS = BK / 8;                       // 16-byte chunks per row
constexpr int TILE_BYTES = BM * BK * 2;
constexpr int SMEM = STAGES * 2 * TILE_BYTES;

__global__ void make_windows(__nv_bfloat16* x, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned w = (unsigned)(i % WINDOWS), h = (unsigned)i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    x[i] = __float2bfloat16(0.5f * __sinf(0.3f * (w & 255)) + (h & 0xffff) / 65535.0f - 0.5f);
}

// Byte offset of a 16-byte chunk within a tile.
__device__ __forceinline__ unsigned chunk_at(int row, int chunk)
{
    return row * (BK * 2) + ((chunk ^ ((row >> 3) & 3)) << 4);
}
__device__ __forceinline__ void load_tile(unsigned dst, const __nv_bfloat16* src)
{
#pragma unroll
    for (int c = threadIdx.x; c < BM * CHUNKS; c += 256) {
        const int row = c / CHUNKS, chunk = c % CHUNKS;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst + chunk_at(row, chunk)),
                     "l"(src + (size_t)row * WINDOWS + chunk * 8) : "memory");
    }
}
__device__ __forceinline__ void ldmatrix4(unsigned (&r)[4], unsigned addr)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(256, 2) covariance(const __nv_bfloat16* __restrict__ x,
                                                     float* __restrict__ cov)
{
    extern __shared__ __align__(128) unsigned char smem[];
    const unsigned base = (unsigned)__cvta_generic_to_shared(smem);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int wm = (warp & 1) * 64, wn = (warp >> 1) * 32;
    const __nv_bfloat16* band = x + (size_t)blockIdx.z * STATIONS * WINDOWS;
    const __nv_bfloat16* ga = band + (size_t)blockIdx.y * BM * WINDOWS;
    const __nv_bfloat16* gb = band + (size_t)blockIdx.x * BM * WINDOWS;

    float acc[4][4][4] = {};
    constexpr int STEPS = WINDOWS / BK;
    for (int s = 0; s < STAGES - 1; ++s) {
        load_tile(base + s * 2 * TILE_BYTES, ga + s * BK);
        load_tile(base + s * 2 * TILE_BYTES + TILE_BYTES, gb + s * BK);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int k = 0; k < STEPS; ++k) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        const int nk = k + STAGES - 1;
        if (nk < STEPS) {
            const unsigned st = base + (nk % STAGES) * 2 * TILE_BYTES;
            load_tile(st, ga + nk * BK);
            load_tile(st + TILE_BYTES, gb + nk * BK);
        }
        asm volatile("cp.async.commit_group;" ::: "memory");

        const unsigned sa = base + (k % STAGES) * 2 * TILE_BYTES, sb = sa + TILE_BYTES;
#pragma unroll
        for (int kk = 0; kk < 2; ++kk) {
            unsigned a[4][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                ldmatrix4(a[i], sa + chunk_at(wm + i * 16 + (lane & 15), kk * 2 + (lane >> 4)));
#pragma unroll
            for (int j = 0; j < 2; ++j)
                ldmatrix4(b[j], sb + chunk_at(wn + j * 16 + (lane & 7) + ((lane >> 4) << 3),
                                              kk * 2 + ((lane >> 3) & 1)));
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    mma(acc[i][j], a[i], b[j / 2][(j & 1) * 2], b[j / 2][(j & 1) * 2 + 1]);
        }
    }
    float* c = cov + (size_t)blockIdx.z * STATIONS * STATIONS;
    const int row0 = blockIdx.y * BM + wm + lane / 4, col0 = blockIdx.x * BM + wn + (lane % 4) * 2;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            float* p = c + (size_t)(row0 + i * 16) * STATIONS + col0 + j * 8;
            *(float2*)p = make_float2(acc[i][j][0], acc[i][j][1]);
            *(float2*)(p + 8 * STATIONS) = make_float2(acc[i][j][2], acc[i][j][3]);
        }
}

int main()
{
    const size_t nx = (size_t)BANDS * STATIONS * WINDOWS, nc = (size_t)BANDS * STATIONS * STATIONS;
    __nv_bfloat16* x;
    float* cov;
    CK(cudaMalloc(&x, nx * sizeof(*x)));
    CK(cudaMalloc(&cov, nc * sizeof(float)));
    make_windows<<<(unsigned)(nx / 256), 256>>>(x, nx);
    CK(cudaFuncSetAttribute(covariance, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));

    const dim3 grid(STATIONS / BM, STATIONS / BM, BANDS);
    for (int i = 0; i < 2; ++i) covariance<<<grid, 256, SMEM>>>(x, cov);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 30;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i) covariance<<<grid, 256, SMEM>>>(x, cov);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<__nv_bfloat16> hx((size_t)STATIONS * WINDOWS);
    std::vector<float> hc((size_t)STATIONS * STATIONS);
    for (int b = 0; b < BANDS; b += 13) {
        CK(cudaMemcpy(hx.data(), x + b * hx.size(), hx.size() * 2, cudaMemcpyDeviceToHost));
        CK(cudaMemcpy(hc.data(), cov + b * hc.size(), hc.size() * 4, cudaMemcpyDeviceToHost));
        for (int q = 0; q < 1500; ++q) {
            int r = (q * 59 + b) % STATIONS, c = (q * 211 + 7) % STATIONS;
            double s = 0;
            for (int k = 0; k < WINDOWS; ++k)
                s += (double)__bfloat162float(hx[(size_t)r * WINDOWS + k]) *
                     __bfloat162float(hx[(size_t)c * WINDOWS + k]);
            if (std::fabs(s - hc[(size_t)r * STATIONS + c]) > 0.2) {
                printf("mismatch in band %d at (%d, %d): %f vs %f\n", b, r, c, hc[(size_t)r * STATIONS + c], s);
                return 1;
            }
        }
    }
    return 0;
}
