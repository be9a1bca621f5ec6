// SPDX-License-Identifier: Apache-2.0. Column-store scan: revenue = sum(price * discount) over rows that pass a date range,
// a discount range and a quantity bound. Persistent blocks; one producer warp streams the
// four columns through a ring by bulk copies, eight consumer warps filter and accumulate.
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("CUDA: %s at %d\n", cudaGetErrorString(e_), __LINE__); return 1; } } while (0)

constexpr int COLUMNS = 4;
constexpr int TILE_ROWS = 1024;
constexpr int STAGES = 6;
constexpr int CONSUMER_WARPS = TILE_ROWS / 4 / 32;
constexpr int THREADS = (CONSUMER_WARPS + 1) * 32;
constexpr int COLUMN_BYTES = TILE_ROWS * 4;
constexpr int STAGE_BYTES = COLUMNS * COLUMN_BYTES;
constexpr int SMEM_BYTES = STAGES * STAGE_BYTES;
constexpr uint32_t ROWS = 1u << 26;
constexpr uint32_t TILES = ROWS / TILE_ROWS;

struct Table { const int* col[COLUMNS]; };       // date, price in cents, discount in percent, quantity
struct Query { int date_lo, date_hi, disc_lo, disc_hi, quantity; };

__device__ inline uint32_t hash32(uint32_t x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

__global__ void fill_table(int* date, int* price, int* disc, int* qty) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t r = blockIdx.x * blockDim.x + threadIdx.x; r < ROWS; r += step) {
        const uint32_t h = hash32(r), g = hash32(r ^ 0x5bd1e995u);
        date[r] = (int)(h % 2556u);
        price[r] = 90000 + (int)(g % 10000000u);
        disc[r] = (int)((h >> 16) % 11u);
        qty[r] = 1 + (int)((g >> 16) % 50u);
    }
}

__host__ __device__ inline bool passes(int date, int disc, int qty, const Query& q) {
    return date >= q.date_lo && date < q.date_hi && disc >= q.disc_lo && disc <= q.disc_hi && qty < q.quantity;
}

__device__ __forceinline__ void bar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void bar_arrive(uint32_t bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void bar_expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void bar_wait(uint32_t bar, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(bar), "r"(parity) : "memory");
}
__device__ __forceinline__ void bulk_copy(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(dst), "l"(src), "r"(bytes), "r"(bar) : "memory");
}

__global__ void __launch_bounds__(THREADS, 2)
scan_revenue(Table table, Query q, unsigned long long* __restrict__ partial) {
    extern __shared__ __align__(128) unsigned char ring[];
    __shared__ __align__(8) uint64_t full[STAGES], empty[STAGES];
    __shared__ unsigned long long warp_sum[CONSUMER_WARPS];
    const int tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const uint32_t full0 = (uint32_t)__cvta_generic_to_shared(full);
    const uint32_t empty0 = (uint32_t)__cvta_generic_to_shared(empty);
    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full0 + 8 * s, 1);
            bar_init(empty0 + 8 * s, CONSUMER_WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    int slot = 0;
    if (warp == CONSUMER_WARPS) {
        if (lane == 0) {
            const uint32_t ring0 = (uint32_t)__cvta_generic_to_shared(ring);
            uint32_t phase = 1;
            for (uint32_t tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
                bar_wait(empty0 + 8 * slot, phase);
                bar_expect(full0 + 8 * slot, STAGE_BYTES);
#pragma unroll
                for (int c = 0; c < COLUMNS; ++c)
                    bulk_copy(ring0 + slot * STAGE_BYTES + c * COLUMN_BYTES, table.col[c] + (size_t)tile * TILE_ROWS,
                              COLUMN_BYTES, full0 + 8 * slot);
                if (++slot == STAGES) { slot = 0; phase ^= 1; }
            }
        }
    } else {
        unsigned long long sum = 0;
        uint32_t phase = 0;
        for (uint32_t tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
            bar_wait(full0 + 8 * slot, phase);
            const int4* stage = reinterpret_cast<const int4*>(ring + slot * STAGE_BYTES) + tid;
            const int4 date = stage[0], price = stage[TILE_ROWS / 4];
            const int4 disc = stage[2 * TILE_ROWS / 4], qty = stage[3 * TILE_ROWS / 4];
            __syncwarp();
            if (lane == 0) bar_arrive(empty0 + 8 * slot);
            if (++slot == STAGES) { slot = 0; phase ^= 1; }
            // a price of at most 1.1e7 times 10 percent: four products fit in 32 bits
            uint32_t quad = 0;
            quad += passes(date.x, disc.x, qty.x, q) ? (uint32_t)(price.x * disc.x) : 0u;
            quad += passes(date.y, disc.y, qty.y, q) ? (uint32_t)(price.y * disc.y) : 0u;
            quad += passes(date.z, disc.z, qty.z, q) ? (uint32_t)(price.z * disc.z) : 0u;
            quad += passes(date.w, disc.w, qty.w, q) ? (uint32_t)(price.w * disc.w) : 0u;
            sum += quad;
        }
        for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
        if (lane == 0) warp_sum[warp] = sum;
    }
    __syncthreads();
    if (tid == 0) {
        unsigned long long sum = 0;
        for (int w = 0; w < CONSUMER_WARPS; ++w) sum += warp_sum[w];
        partial[blockIdx.x] = sum;
    }
}

__global__ void scan_plain(Table t, Query q, unsigned long long* total) {
    const uint32_t step = gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (uint32_t r = blockIdx.x * blockDim.x + threadIdx.x; r < ROWS; r += step)
        if (passes(t.col[0][r], t.col[2][r], t.col[3][r], q)) sum += (unsigned long long)t.col[1][r] * t.col[2][r];
    atomicAdd(total, sum);
}

int main() {
    int* col[COLUMNS];
    Table table;
    for (int c = 0; c < COLUMNS; ++c) {
        CK(cudaMalloc(&col[c], (size_t)ROWS * 4));
        table.col[c] = col[c];
    }
    fill_table<<<2112, 256>>>(col[0], col[1], col[2], col[3]);
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int grid = sms * 2, iters = 30;
    const Query query = {731, 1461, 3, 8, 30};
    unsigned long long *partial, *total, want = 0, got = 0;
    CK(cudaMalloc(&partial, grid * 8));
    CK(cudaMalloc(&total, 8));
    CK(cudaMemset(total, 0, 8));
    scan_plain<<<1056, 256>>>(table, query, total);
    CK(cudaMemcpy(&want, total, 8, cudaMemcpyDeviceToHost));
    CK(cudaFuncSetAttribute(scan_revenue, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    for (int it = -2; it < iters; ++it) {
        if (it == 0) CK(cudaEventRecord(t0));
        scan_revenue<<<grid, THREADS, SMEM_BYTES>>>(table, query, partial);
    }
    CK(cudaEventRecord(t1));
    CK(cudaDeviceSynchronize());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    std::vector<unsigned long long> part(grid);
    CK(cudaMemcpy(part.data(), partial, grid * 8, cudaMemcpyDeviceToHost));
    for (unsigned long long v : part) got += v;
    if (got != want || want == 0) { printf("revenue %llu instead of %llu\n", got, want); return 1; }
    return 0;
}
