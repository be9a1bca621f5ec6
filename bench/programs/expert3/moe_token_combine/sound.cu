// SPDX-License-Identifier: Apache-2.0. Combine step of a mixture-of-experts layer: every token sums the rows its two experts
// produced, weighted by the router.  out[t] = g[t][0] * e[slot[t][0]] + g[t][1] * e[slot[t][1]]
// Persistent blocks; a producer warp gathers whole rows by bulk copies into a ring.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#define CHECK(x)                                                                  \
    do {                                                                          \
        cudaError_t e_ = (x);                                                     \
        if (e_ != cudaSuccess) {                                                  \
            printf("%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));     \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

constexpr int kTokens = 32768, kHidden = 4096, kRows = 2 * kTokens;
constexpr int kRowBytes = kHidden * 2, kStages = 4, kConsumers = 256;
constexpr int kSmem = kStages * 2 * kRowBytes + 2 * kStages * 8;

__host__ __device__ inline uint32_t mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    x ^= x >> 16;
    return x;
}
__host__ __device__ inline float expert_value(uint32_t i) { return (float)((int)(mix32(i) & 255) - 128) * (1.0f / 128.0f); }
__host__ __device__ inline int slot_of(uint32_t k) { return (int)((k * 40503u + 12345u) % kRows); }
__host__ __device__ inline float gate_of(uint32_t t) { return 0.5f + (float)(mix32(t + 0xabcdef01u) & 127) * (1.0f / 256.0f); }

__global__ void make_experts(__nv_bfloat16* experts, int2* slot, float2* gate)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    experts[i] = __float2bfloat16(expert_value(i));
    if (i < kTokens) {
        slot[i] = make_int2(slot_of(2 * i), slot_of(2 * i + 1));
        gate[i] = make_float2(gate_of(i), 1.0f - gate_of(i));
    }
}

__device__ inline uint32_t smem_addr(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ inline void mbar_init(uint64_t* b, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_addr(b)), "r"(count) : "memory");
}
__device__ inline void mbar_arrive(uint64_t* b)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_addr(b)) : "memory");
}
__device__ inline void mbar_expect(uint64_t* b, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(b)), "r"(bytes) : "memory");
}
__device__ inline void mbar_wait(uint64_t* b, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(smem_addr(b)), "r"(parity) : "memory");
    } while (!done);
}
__device__ inline void bulk_load(void* dst, const void* src, uint32_t bytes, uint64_t* b)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(smem_addr(dst)), "l"(src), "r"(bytes), "r"(smem_addr(b)) : "memory");
}
__device__ inline uint32_t blend(uint32_t a, uint32_t b, float2 g)
{
    const float2 x = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&a));
    const float2 y = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&b));
    const __nv_bfloat162 r = __floats2bfloat162_rn(fmaf(g.x, x.x, g.y * y.x), fmaf(g.x, x.y, g.y * y.y));
    return *reinterpret_cast<const uint32_t*>(&r);
}

__global__ void __launch_bounds__(kConsumers + 32)
moe_combine(const __nv_bfloat16* __restrict__ experts, const int2* __restrict__ slot, const float2* __restrict__ gate,
            __nv_bfloat16* __restrict__ out)
{
    extern __shared__ __align__(128) unsigned char smem[];
    uint64_t* full = reinterpret_cast<uint64_t*>(smem + kStages * 2 * kRowBytes);
    uint64_t* empty = full + kStages;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            mbar_init(full + s, 1);
            mbar_init(empty + s, kConsumers / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    int n = 0;
    if (threadIdx.x >= kConsumers) {
        if (threadIdx.x != kConsumers) return;
        int2 rows = slot[blockIdx.x];
        for (int t = blockIdx.x; t < kTokens; t += gridDim.x, ++n) {
            const int s = n % kStages;
            const int2 now = rows;
            if (t + (int)gridDim.x < kTokens) rows = slot[t + gridDim.x];
            mbar_wait(empty + s, ((n / kStages) & 1) ^ 1);
            unsigned char* stage = smem + s * 2 * kRowBytes;
            mbar_expect(full + s, 2 * kRowBytes);
            bulk_load(stage, experts + (size_t)now.x * kHidden, kRowBytes, full + s);
            bulk_load(stage + kRowBytes, experts + (size_t)now.y * kHidden, kRowBytes, full + s);
        }
        return;
    }
    for (int t = blockIdx.x; t < kTokens; t += gridDim.x, ++n) {
        const int s = n % kStages;
        const float2 g = gate[t];
        const uint4* row0 = reinterpret_cast<const uint4*>(smem + s * 2 * kRowBytes);
        const uint4* row1 = row0 + kRowBytes / 16;
        uint4* dst = reinterpret_cast<uint4*>(out + (size_t)t * kHidden);
        mbar_wait(full + s, (n / kStages) & 1);
#pragma unroll
        for (int j = 0; j < kRowBytes / 16 / kConsumers; ++j) {
            const int i = threadIdx.x + j * kConsumers;
            const uint4 a = row0[i], b = row1[i];
            __stcs(dst + i, make_uint4(blend(a.x, b.x, g), blend(a.y, b.y, g), blend(a.z, b.z, g), blend(a.w, b.w, g)));
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbar_arrive(empty + s);
    }
}

int main()
{
    __nv_bfloat16 *experts, *out;
    int2* slot;
    float2* gate;
    CHECK(cudaMalloc(&experts, (size_t)kRows * kRowBytes));
    CHECK(cudaMalloc(&out, (size_t)kTokens * kRowBytes));
    CHECK(cudaMalloc(&slot, sizeof(int2) * kTokens));
    CHECK(cudaMalloc(&gate, sizeof(float2) * kTokens));
    make_experts<<<(unsigned)((size_t)kRows * kHidden / 256), 256>>>(experts, slot, gate);
    CHECK(cudaGetLastError());
    CHECK(cudaFuncSetAttribute(moe_combine, cudaFuncAttributeMaxDynamicSharedMemorySize, kSmem));
    int sms = 0;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));

    cudaEvent_t start, stop;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    const int warmup = 2, iterations = 40;
    for (int i = 0; i < warmup + iterations; ++i) {
        if (i == warmup) CHECK(cudaEventRecord(start));
        moe_combine<<<3 * sms, kConsumers + 32, kSmem>>>(experts, slot, gate, out);
    }
    CHECK(cudaEventRecord(stop));
    CHECK(cudaEventSynchronize(stop));
    CHECK(cudaGetLastError());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, start, stop));
    printf("us_per_iteration: %.1f\n", 1000.0 * ms / iterations);

    std::vector<__nv_bfloat16> got(kHidden);
    for (int s = 0; s < 128; ++s) {
        const uint32_t t = s == 127 ? kTokens - 1 : mix32(s) % kTokens;
        CHECK(cudaMemcpy(got.data(), out + (size_t)t * kHidden, kRowBytes, cudaMemcpyDeviceToHost));
        for (int d = 0; d < kHidden; ++d) {
            const float want = gate_of(t) * expert_value((uint32_t)slot_of(2 * t) * kHidden + d) +
                               (1.0f - gate_of(t)) * expert_value((uint32_t)slot_of(2 * t + 1) * kHidden + d);
            if (!(std::fabs(__bfloat162float(got[d]) - want) <= 1e-3f + 0.01f * std::fabs(want))) {
                printf("mismatch: token %u dim %d: %g, expected %g\n", t, d, __bfloat162float(got[d]), want);
                return 1;
            }
        }
    }
    return 0;
}
