// SPDX-License-Identifier: Apache-2.0
// Station beamformer of a low-frequency radio array.  The digitiser delivers blocks of 128 time samples x 64 inputs in 4-bit offset binary with one gain a
// time sample; 32 beams are formed from 1024 real inputs (512 dipoles, I and Q).
// Unpacking warps turn blocks into fp16 tiles in a shared-memory ring, beam
// warps multiply the tiles with the resident steering matrix.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>

#define CU(x) do { cudaError_t rc_ = (x); if (rc_ != cudaSuccess) { \
    fprintf(stderr, "%s at line %d\n", cudaGetErrorString(rc_), __LINE__); exit(2); } } while (0)

constexpr int BEAMS = 32, INPUTS = 1024, TIMES = 524288;
constexpr int TT = 128;                       // time samples a tile
constexpr int KC = 64, CHUNKS = INPUTS / KC;  // inputs a digitiser block
constexpr int TILES = TIMES / TT;
constexpr int UNPACK_WARPS = 1;
constexpr int BEAM_WARPS = 4;
constexpr int UNPACK_THREADS = UNPACK_WARPS * 32, BEAM_THREADS = BEAM_WARPS * 32;
constexpr int THREADS = UNPACK_THREADS + BEAM_THREADS;
constexpr int SLOTS = 4, SLOT_BYTES = TT * KC * 2;
constexpr int STEER_BYTES = BEAMS * INPUTS * 2;
constexpr int SMEM = STEER_BYTES + SLOTS * SLOT_BYTES;
constexpr int ITEMS = TT * KC / 32;           // 16-byte pieces of a packed block
constexpr int PER_LANE = ITEMS / UNPACK_THREADS;

__device__ __forceinline__ uint32_t s32(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void bar_init(uint64_t* b, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s32(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint64_t* b) {
    asm volatile("{ .reg .b64 st; mbarrier.arrive.shared::cta.b64 st, [%0]; }" ::"r"(s32(b)) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* b, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(s32(b)), "r"(parity) : "memory");
    } while (!done);
}
__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], uint32_t addr) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(addr) : "memory");
}
__device__ __forceinline__ void mma_f16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ uint32_t tile_at(int row, int chunk) { return row * 128 + ((chunk ^ (row & 7)) << 4); }

// Eight offset-binary nibbles to eight fp16 values, in the order n0 n4 n1 n5 n2 n6 n3 n7.
__device__ __forceinline__ uint4 unpack8(uint32_t w, half2 gain) {
    const half2 bias = __floats2half2_rn(1032.f, 1032.f);
    uint32_t v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const uint32_t bits = ((w >> (4 * j)) & 0x000f000fu) | 0x64006400u;
        const half2 x = __hmul2(__hsub2(*reinterpret_cast<const half2*>(&bits), bias), gain);
        v[j] = *reinterpret_cast<const uint32_t*>(&x);
    }
    return make_uint4(v[0], v[1], v[2], v[3]);
}

__device__ void unpack_role(const uint4* __restrict__ packed, const half* __restrict__ gains,
                            unsigned char* ring, uint64_t* full, uint64_t* empty, int tid) {
    const int blocks = ((TILES - 1 - int(blockIdx.x)) / int(gridDim.x) + 1) * CHUNKS;
    uint4 q[PER_LANE];
    half g[PER_LANE];
    // The packed block after the present one is always under way.
    auto fetch = [&](int it) {
        const size_t tile = blockIdx.x + size_t(it / CHUNKS) * gridDim.x;
        const size_t blk = tile * CHUNKS + it % CHUNKS;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            q[i] = __ldcs(packed + blk * ITEMS + tid + i * UNPACK_THREADS);
            g[i] = gains[tile * TT + ((tid + i * UNPACK_THREADS) >> 1)];
        }
    };
    fetch(0);
    for (int it = 0; it < blocks; ++it) {
        const int slot = it % SLOTS;
        uint4 cur[PER_LANE];
        half2 gain[PER_LANE];
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            cur[i] = q[i];
            gain[i] = __half2half2(g[i]);
        }
        if (it + 1 < blocks) fetch(it + 1);
        bar_wait(&empty[slot], ((it / SLOTS) & 1) ^ 1);
        unsigned char* dst = ring + slot * SLOT_BYTES;
#pragma unroll
        for (int i = 0; i < PER_LANE; ++i) {
            const int item = tid + i * UNPACK_THREADS, row = item >> 1, c = (item & 1) * 4;
            *reinterpret_cast<uint4*>(dst + tile_at(row, c + 0)) = unpack8(cur[i].x, gain[i]);
            *reinterpret_cast<uint4*>(dst + tile_at(row, c + 1)) = unpack8(cur[i].y, gain[i]);
            *reinterpret_cast<uint4*>(dst + tile_at(row, c + 2)) = unpack8(cur[i].z, gain[i]);
            *reinterpret_cast<uint4*>(dst + tile_at(row, c + 3)) = unpack8(cur[i].w, gain[i]);
        }
        bar_arrive(&full[slot]);
    }
}

__device__ void beam_role(float* __restrict__ out, uint32_t steer, uint32_t ring, uint64_t* full, uint64_t* empty, int tid) {
    const int lane = tid & 31, wt = (tid >> 5) * 32;
    int it = 0;
    for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
        float acc[2][4][4] = {};
        for (int kc = 0; kc < CHUNKS; ++kc, ++it) {
            const int slot = it % SLOTS;
            bar_wait(&full[slot], (it / SLOTS) & 1);
            const uint32_t sa = steer + kc * (BEAMS * 128), sb = ring + slot * SLOT_BYTES;
#pragma unroll
            for (int k = 0; k < KC / 16; ++k) {
                uint32_t a[2][4], b[2][4];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    ldsm4(a[i], sa + tile_at(i * 16 + (lane & 15), 2 * k + (lane >> 4)));
                    ldsm4(b[i], sb + tile_at(wt + i * 16 + (lane & 7) + ((lane >> 4) << 3), 2 * k + ((lane >> 3) & 1)));
                }
#pragma unroll
                for (int i = 0; i < 2; ++i)
#pragma unroll
                    for (int j = 0; j < 4; ++j) mma_f16(acc[i][j], a[i], b[j >> 1][(j & 1) * 2], b[j >> 1][(j & 1) * 2 + 1]);
            }
            bar_arrive(&empty[slot]);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const size_t beam = i * 16 + (lane >> 2), t = size_t(tile) * TT + wt + j * 8 + (lane & 3) * 2;
                __stcs(reinterpret_cast<float2*>(out + beam * TIMES + t), make_float2(acc[i][j][0], acc[i][j][1]));
                __stcs(reinterpret_cast<float2*>(out + (beam + 8) * TIMES + t), make_float2(acc[i][j][2], acc[i][j][3]));
            }
    }
}

__global__ void __launch_bounds__(THREADS, 1)
form_beams(const uint4* __restrict__ packed, const half* __restrict__ gains, const half* __restrict__ steering, float* __restrict__ out) {
    extern __shared__ __align__(1024) unsigned char smem[];
    __shared__ uint64_t full[SLOTS], empty[SLOTS];
    unsigned char* ring = smem + STEER_BYTES;
    for (int i = threadIdx.x; i < BEAMS * INPUTS / 8; i += THREADS) {
        const int beam = i / (INPUTS / 8), c = i % (INPUTS / 8);
        *reinterpret_cast<uint4*>(smem + (c >> 3) * (BEAMS * 128) + tile_at(beam, c & 7)) =
            reinterpret_cast<const uint4*>(steering)[i];
    }
    if (threadIdx.x == 0)
        for (int s = 0; s < SLOTS; ++s) {
            bar_init(&full[s], UNPACK_THREADS);
            bar_init(&empty[s], BEAM_THREADS);
        }
    __syncthreads();
    if (threadIdx.x < BEAM_THREADS)
        beam_role(out, s32(smem), s32(ring), full, empty, threadIdx.x);
    else
        unpack_role(packed, gains, ring, full, empty, threadIdx.x - BEAM_THREADS);
}

__host__ __device__ inline uint32_t mix(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
__global__ void digitise(uint32_t* packed, size_t words, half* gains, half* steering) {
    const size_t step = size_t(gridDim.x) * blockDim.x, first = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    for (size_t i = first; i < words; i += step) packed[i] = mix(uint32_t(i) + 77u);
    for (size_t i = first; i < TIMES; i += step) gains[i] = __float2half(0.125f * (1 + (mix(uint32_t(i)) & 3)));
    for (size_t i = first; i < size_t(BEAMS) * INPUTS; i += step)
        steering[i] = __float2half(float(int(mix(uint32_t(i) ^ 0xabcdu) & 255) - 128) / 128.f);
}

int main() {
    const size_t words = size_t(TIMES) * INPUTS / 8;
    uint32_t* packed; half *gains, *steering; float* out;
    CU(cudaMalloc(&packed, words * 4));
    CU(cudaMalloc(&gains, TIMES * 2));
    CU(cudaMalloc(&steering, BEAMS * INPUTS * 2));
    CU(cudaMalloc(&out, size_t(BEAMS) * TIMES * 4));
    digitise<<<2048, 256>>>(packed, words, gains, steering);
    CU(cudaFuncSetAttribute(form_beams, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
    int sms = 0;
    CU(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    auto run = [&] { form_beams<<<sms, THREADS, SMEM>>>(reinterpret_cast<const uint4*>(packed), gains, steering, out); };
    run();
    CU(cudaGetLastError());
    CU(cudaDeviceSynchronize());
    cudaEvent_t e0, e1;
    CU(cudaEventCreate(&e0));
    CU(cudaEventCreate(&e1));
    const int reps = 50;
    CU(cudaEventRecord(e0));
    for (int i = 0; i < reps; ++i) run();
    CU(cudaEventRecord(e1));
    CU(cudaEventSynchronize(e1));
    float ms = 0;
    CU(cudaEventElapsedTime(&ms, e0, e1));
    printf("us_per_iteration: %.2f\n", ms * 1000 / reps);

    std::vector<half> hg(TIMES), hs(size_t(BEAMS) * INPUTS);
    CU(cudaMemcpy(hg.data(), gains, TIMES * 2, cudaMemcpyDeviceToHost));
    CU(cudaMemcpy(hs.data(), steering, hs.size() * 2, cudaMemcpyDeviceToHost));
    std::vector<float> ho(size_t(BEAMS) * TIMES);
    CU(cudaMemcpy(ho.data(), out, ho.size() * 4, cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int s = 0; s < 3000; ++s) {
        const int beam = s % BEAMS, t = int(mix(s + 1000u) % TIMES), tile = t / TT, row = t % TT;
        double sum = 0;
        for (int k = 0; k < INPUTS; ++k) {
            const int kc = k / KC, word = (k % KC) / 8, pos = k % 8;
            const size_t w = ((size_t(tile) * CHUNKS + kc) * TT + row) * 8 + word;
            const int nib = (mix(uint32_t(w) + 77u) >> (4 * ((pos >> 1) + (pos & 1) * 4))) & 15;
            sum += (nib - 8) * double(__half2float(hg[t])) * __half2float(hs[size_t(beam) * INPUTS + k]);
        }
        if (!(std::fabs(ho[size_t(beam) * TIMES + t] - sum) <= 0.05 + 0.01 * std::fabs(sum))) ++bad;
    }
    if (bad) printf("bad beams: %d\n", bad);
    return bad ? 1 : 0;
}
