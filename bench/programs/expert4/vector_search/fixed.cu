// SPDX-License-Identifier: Apache-2.0
// Exhaustive nearest-vector search: best inner product of 16 fp16 queries over a database of 128-dimensional vectors.
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

namespace ann {

constexpr int kQueries = 16;

struct Hit {
    float score;
    int id;
};

template <int Stages_, int TileVecs_>
struct Ring {
    static constexpr int Dim = 128, Stages = Stages_, TileVecs = TileVecs_, Threads = TileVecs * 4;
    static constexpr int TileBytes = TileVecs * Dim * 2, Bytes = Stages * TileBytes;
};

__device__ __forceinline__ uint32_t smem_u32(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void cp16(uint32_t dst, const void* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src));
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n"); }
template <int Pending>
__device__ __forceinline__ void cp_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}
__device__ __forceinline__ void ldmatrix4(uint32_t (&r)[4], uint32_t addr) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(addr)
                 : "memory");
}
__device__ __forceinline__ void mma16816(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void offer(Hit& h, float s, int id) {
    if (s > h.score) h = {s, id};
}

template <class R>
__global__ void __launch_bounds__(R::Threads)
    vector_search(const __half* __restrict__ db, const __half* __restrict__ queries, Hit* __restrict__ partial, int tiles) {
    extern __shared__ __align__(128) uint8_t ring[];
    const uint32_t base = smem_u32(ring);
    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31, g = lane >> 2, t = lane & 3;

    uint32_t a[8][4];
#pragma unroll
    for (int k = 0; k < 8; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            a[k][i] = *reinterpret_cast<const uint32_t*>(queries + (g + (i & 1) * 8) * R::Dim + k * 16 + (i >> 1) * 8 + t * 2);

    const int mine = (tiles - int(blockIdx.x) + int(gridDim.x) - 1) / int(gridDim.x);
    auto tile_of = [&](int n) { return int(blockIdx.x) + n * int(gridDim.x); };
    auto request = [&](int n) {
        if (n < mine) {
            const uint32_t slot = base + (n % R::Stages) * R::TileBytes;
            const uint8_t* src = reinterpret_cast<const uint8_t*>(db) + size_t(tile_of(n)) * R::TileBytes;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int c = tid + i * R::Threads, row = c >> 4, chunk = c & 15;
                cp16(slot + row * 256 + ((chunk ^ (row & 7)) << 4), src + c * 16);
            }
        }
        cp_commit();
    };
#pragma unroll
    for (int n = 0; n < R::Stages - 1; ++n) request(n);

    Hit best[2] = {{-1e30f, -1}, {-1e30f, -1}};
    for (int n = 0; n < mine; ++n) {
        cp_wait<R::Stages - 2>();
        __syncthreads();
        request(n + R::Stages - 1);
        const int row = warp * 8 + (lane & 7);
        const uint32_t src = base + (n % R::Stages) * R::TileBytes + row * 256;
        float d0[4] = {}, d1[4] = {};
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            uint32_t b[4];
            ldmatrix4(b, src + (((4 * j + (lane >> 3)) ^ (row & 7)) << 4));
            mma16816(d0, a[2 * j], b[0], b[1]);
            mma16816(d1, a[2 * j + 1], b[2], b[3]);
        }
        const int id = tile_of(n) * R::TileVecs + warp * 8 + t * 2;
        offer(best[0], d0[0] + d1[0], id);
        offer(best[0], d0[1] + d1[1], id + 1);
        offer(best[1], d0[2] + d1[2], id);
        offer(best[1], d0[3] + d1[3], id + 1);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
        for (int o = 1; o < 4; o <<= 1) {
            float s = __shfl_xor_sync(~0u, best[h].score, o);
            int id = __shfl_xor_sync(~0u, best[h].id, o);
            offer(best[h], s, id);
        }
        if (t == 0) partial[(size_t(blockIdx.x) * (R::Threads / 32) + warp) * kQueries + g + 8 * h] = best[h];
    }
}

__global__ void merge_hits(const Hit* __restrict__ partial, Hit* __restrict__ out, int n) {
    const int q = threadIdx.x >> 5, lane = threadIdx.x & 31;
    Hit best = {-1e30f, -1};
    for (int i = lane; i < n; i += 32) {
        Hit h = partial[size_t(i) * kQueries + q];
        offer(best, h.score, h.id);
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        float s = __shfl_xor_sync(~0u, best.score, o);
        int id = __shfl_xor_sync(~0u, best.id, o);
        offer(best, s, id);
    }
    if (lane == 0) out[q] = best;
}

}  // namespace ann

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline __half entry(size_t i) { return __float2half(unit(uint32_t(i)) * 2.0f - 1.0f); }
__global__ void fill(__half* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) p[i] = entry(i);
}

int main() {
    using namespace ann;
    using R = Ring<6, 32>;
    const int vectors = 1 << 21, tiles = vectors / R::TileVecs, iters = 80;
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int blocks = 2 * sms;
    std::vector<__half> q(kQueries * R::Dim);
    std::vector<int> target(kQueries);
    for (int i = 0; i < kQueries; ++i) {
        target[i] = int(mix(i + 4711u) % unsigned(vectors));
        for (int c = 0; c < R::Dim; ++c)
            q[i * R::Dim + c] = __float2half(__half2float(entry(size_t(target[i]) * R::Dim + c)) +
                                             0.2f * (unit(uint32_t(i * R::Dim + c) ^ 0xfeed5eedu) - 0.5f));
    }
    __half *d_db, *d_q;
    Hit *d_part, *d_out;
    CK(cudaMalloc(&d_db, size_t(vectors) * R::Dim * 2));
    CK(cudaMalloc(&d_q, q.size() * 2));
    CK(cudaMalloc(&d_part, size_t(blocks) * (R::Threads / 32) * kQueries * sizeof(Hit)));
    CK(cudaMalloc(&d_out, kQueries * sizeof(Hit)));
    CK(cudaMemcpy(d_q, q.data(), q.size() * 2, cudaMemcpyHostToDevice));
    fill<<<4096, 256>>>(d_db, size_t(vectors) * R::Dim);
    CK(cudaGetLastError());
    CK(cudaFuncSetAttribute(vector_search<R>, cudaFuncAttributeMaxDynamicSharedMemorySize, R::Bytes));
    auto step = [&] {
        vector_search<R><<<blocks, R::Threads, R::Bytes>>>(d_db, d_q, d_part, tiles);
        merge_hits<<<1, kQueries * 32>>>(d_part, d_out, blocks * (R::Threads / 32));
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
    std::vector<Hit> out(kQueries);
    CK(cudaMemcpy(out.data(), d_out, kQueries * sizeof(Hit), cudaMemcpyDeviceToHost));
    for (int i = 0; i < kQueries; ++i) {
        double ref = 0;
        for (int c = 0; c < R::Dim; ++c)
            ref += double(__half2float(q[i * R::Dim + c])) * __half2float(entry(size_t(target[i]) * R::Dim + c));
        if (out[i].id != target[i] || !(std::fabs(out[i].score - ref) < 0.02)) {
            std::printf("mismatch query %d: id %d score %g vs id %d score %g\n", i, out[i].id, out[i].score, target[i], ref);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
