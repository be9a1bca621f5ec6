// SPDX-License-Identifier: Apache-2.0
// Column-store aggregate, in the manner of TPC-H Q6: SELECT sum(price * discount) FROM lineitem WHERE quantity < Q AND discount BETWEEN A AND B
// Columns are streamed through a ring of shared-memory slots by asynchronous copies.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                              \
    do {                                                                         \
        cudaError_t e_ = (call);                                                 \
        if (e_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

constexpr int kRows = 36 << 20;
constexpr int kThreads = 128;
constexpr int kColumns = 3;
constexpr int kSlots = 2;                       // slots in the ring
constexpr int kRowsPerSlot = kThreads * 4;      // four rows (16 bytes a column) per thread
constexpr int kRingBytes = kSlots * kColumns * kThreads * (int)sizeof(int4);

struct Predicate {
    int quantity_below;
    int discount_low;
    int discount_high;
};

__host__ __device__ inline uint32_t row_bits(uint32_t row)
{
    uint32_t x = row * 0x9e3779b1u;
    x ^= x >> 15;
    x *= 0x2c1b3c6du;
    x ^= x >> 12;
    x *= 0x297a2d39u;
    x ^= x >> 15;
    return x;
}
__host__ __device__ inline int quantity_of(uint32_t b) { return 1 + (int)((b & 0xffu) * 50u >> 8); }
__host__ __device__ inline int discount_of(uint32_t b) { return (int)((b >> 8 & 0xffu) * 11u >> 8); }
__host__ __device__ inline int price_of(uint32_t b) { return 1000 + (int)(b >> 12); }

__global__ void load_table(int* quantity, int* discount, int* price)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= (uint32_t)kRows) return;
    const uint32_t b = row_bits(row);
    quantity[row] = quantity_of(b);
    discount[row] = discount_of(b);
    price[row] = price_of(b);
}

__device__ inline long long revenue(int quantity, int discount, int price, const Predicate& p)
{
    const bool keep = quantity < p.quantity_below && discount >= p.discount_low &&
                      discount <= p.discount_high;
    return keep ? (long long)price * discount : 0;
}

__global__ void __launch_bounds__(kThreads)
scan_lineitem(const int4* __restrict__ quantity, const int4* __restrict__ discount,
              const int4* __restrict__ price, Predicate pred,
              unsigned long long* __restrict__ total)
{
    extern __shared__ int4 ring[];              // [slot][column][thread]
    __shared__ long long warp_sums[kThreads / 32];

    const int chunks = kRows / kRowsPerSlot;
    const int t = threadIdx.x;

    // A thread reads back only what it copied itself, so no barrier is needed in the loop.
    auto fetch = [&](int chunk, int slot) {
        if (chunk < chunks) {
            int4* dst = ring + slot * kColumns * kThreads + t;
            const size_t src = (size_t)chunk * kThreads + t;
            __pipeline_memcpy_async(dst, quantity + src, sizeof(int4));
            __pipeline_memcpy_async(dst + kThreads, discount + src, sizeof(int4));
            __pipeline_memcpy_async(dst + 2 * kThreads, price + src, sizeof(int4));
        }
        __pipeline_commit();
    };

    int ahead = blockIdx.x;
    for (int s = 0; s < kSlots - 1; ++s) {
        fetch(ahead, s);
        ahead += gridDim.x;
    }

    long long sum = 0;
    int slot = 0, free_slot = kSlots - 1;
    for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        __pipeline_wait_prior(kSlots - 2);
        const int4* src = ring + slot * kColumns * kThreads + t;
        const int4 q = src[0];
        const int4 d = src[kThreads];
        const int4 p = src[2 * kThreads];
        fetch(ahead, free_slot);
        ahead += gridDim.x;
        sum += revenue(q.x, d.x, p.x, pred) + revenue(q.y, d.y, p.y, pred) +
               revenue(q.z, d.z, p.z, pred) + revenue(q.w, d.w, p.w, pred);
        slot = slot + 1 == kSlots ? 0 : slot + 1;
        free_slot = free_slot + 1 == kSlots ? 0 : free_slot + 1;
    }

    for (int k = 16; k > 0; k >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, k);
    if (t % 32 == 0) warp_sums[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        for (int w = 1; w < kThreads / 32; ++w) sum += warp_sums[w];
        atomicAdd(total, (unsigned long long)sum);
    }
}

static long long expected(const Predicate& p)
{
    long long sum = 0;
    for (uint32_t row = 0; row < (uint32_t)kRows; ++row) {
        const uint32_t b = row_bits(row);
        const int d = discount_of(b);
        if (quantity_of(b) < p.quantity_below && d >= p.discount_low && d <= p.discount_high)
            sum += (long long)price_of(b) * d;
    }
    return sum;
}

int main()
{
    int *quantity, *discount, *price;
    unsigned long long* total;
    CHECK(cudaMalloc(&quantity, sizeof(int) * (size_t)kRows));
    CHECK(cudaMalloc(&discount, sizeof(int) * (size_t)kRows));
    CHECK(cudaMalloc(&price, sizeof(int) * (size_t)kRows));
    CHECK(cudaMalloc(&total, sizeof(*total)));
    load_table<<<kRows / 256, 256>>>(quantity, discount, price);
    CHECK(cudaGetLastError());

    int device = 0, sms = 0;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CHECK(cudaFuncSetAttribute(scan_lineitem, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));

    const Predicate pred{24, 5, 7};
    auto query = [&] {
        CHECK(cudaMemsetAsync(total, 0, sizeof(*total)));
        scan_lineitem<<<sms, kThreads, kRingBytes>>>((const int4*)quantity, (const int4*)discount,
                                                     (const int4*)price, pred, total);
    };
    query();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    const int iterations = 100;
    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaEventRecord(start));
    for (int it = 0; it < iterations; ++it) query();
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0.0f;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    unsigned long long got = 0;
    CHECK(cudaMemcpy(&got, total, sizeof(got), cudaMemcpyDeviceToHost));
    const long long want = expected(pred);
    if ((long long)got != want) {
        std::fprintf(stderr, "sum %lld, expected %lld\n", (long long)got, want);
        return 1;
    }
    std::printf("ok\n");
    return 0;
}
