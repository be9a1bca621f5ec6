// SPDX-License-Identifier: Apache-2.0
// Prices an arithmetic Asian basket call on four correlated assets by Monte Carlo.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CUDA_OK(call)                                                              \
    do {                                                                           \
        cudaError_t err_ = (call);                                                 \
        if (err_ != cudaSuccess) {                                                 \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_)); \
            std::exit(2);                                                          \
        }                                                                          \
    } while (0)

[[maybe_unused]] static inline uint32_t hash32(uint32_t x)
{
    x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16;
    return x;
}
[[maybe_unused]] static inline float unit(uint32_t x) { return (hash32(x) >> 8) * (1.0f / 16777216.0f); }

template <class Step>
static float time_steps(int warm, int iters, Step step)
{
    for (int i = 0; i < warm; ++i) step();
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaDeviceSynchronize());
    cudaEvent_t a, b;
    CUDA_OK(cudaEventCreate(&a));
    CUDA_OK(cudaEventCreate(&b));
    CUDA_OK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CUDA_OK(cudaEventRecord(b));
    CUDA_OK(cudaEventSynchronize(b));
    CUDA_OK(cudaGetLastError());
    float ms = 0.f;
    CUDA_OK(cudaEventElapsedTime(&ms, a, b));
    CUDA_OK(cudaEventDestroy(a));
    CUDA_OK(cudaEventDestroy(b));
    return ms * 1000.f / iters;
}

namespace ptx {
__device__ __forceinline__ uint32_t saddr(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void mbar_init(uint64_t* bar, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(saddr(bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void mbar_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void mbar_expect(uint64_t* bar, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(saddr(bar)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint64_t* bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(saddr(bar)) : "memory");
}
__device__ __forceinline__ bool mbar_try(uint64_t* bar, uint32_t parity)
{
    uint32_t ok;
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(ok) : "r"(saddr(bar)), "r"(parity) : "memory");
    return ok != 0;
}
__device__ __forceinline__ void mbar_wait(uint64_t* bar, uint32_t parity)
{
    while (!mbar_try(bar, parity)) { }
}
}  // namespace ptx

namespace mc {

constexpr int kAssets = 4;
constexpr int kSteps = 64;
constexpr int kStepsPerChunk = 4;
constexpr int kChunks = kSteps / kStepsPerChunk;
constexpr int kGroupsPerBlock = 42;
constexpr int kSlots = 14;
constexpr int kPathsPerBlock = kGroupsPerBlock * 32;

template <int Producers, int Consumers>
struct Roles {
    static constexpr int kProducers = Producers;
    static constexpr int kConsumers = Consumers;
    static constexpr int kThreads = (Producers + Consumers) * 32;
    static_assert(kGroupsPerBlock % Consumers == 0, "path groups are dealt evenly to the consumers");
};

struct Market {
    float chol[10];
    float drift[kAssets];
    float spot_log2[kAssets];
    float weight[kAssets];
    float strike;
    float discount;
    uint32_t seed_lo, seed_hi;
};

__host__ __device__ inline void mulhilo(uint32_t a, uint32_t b, uint32_t& hi, uint32_t& lo)
{
    const uint64_t p = static_cast<uint64_t>(a) * b;
    hi = static_cast<uint32_t>(p >> 32);
    lo = static_cast<uint32_t>(p);
}

__host__ __device__ inline uint4 philox(uint32_t path, uint32_t step, uint32_t k0, uint32_t k1)
{
    uint4 c = make_uint4(path, step, 0u, 0u);
#pragma unroll
    for (int r = 0; r < 10; ++r) {
        uint32_t h0, l0, h1, l1;
        mulhilo(0xD2511F53u, c.x, h0, l0);
        mulhilo(0xCD9E8D57u, c.z, h1, l1);
        c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

__device__ __forceinline__ float to_unit(uint32_t x) { return fmaf(static_cast<float>(x >> 8), 0x1p-24f, 0x1p-25f); }

__device__ __forceinline__ float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float fast_sqrt(float x)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float4 normals(uint4 bits)
{
    const float r0 = fast_sqrt(fmaxf(-2.f * __logf(to_unit(bits.x)), 0.f));
    const float r1 = fast_sqrt(fmaxf(-2.f * __logf(to_unit(bits.z)), 0.f));
    float s0, c0, s1, c1;
    __sincosf(6.2831853f * to_unit(bits.y), &s0, &c0);
    __sincosf(6.2831853f * to_unit(bits.w), &s1, &c1);
    return make_float4(r0 * c0, r0 * s0, r1 * c1, r1 * s1);
}

struct AsianCall {
    __device__ static float payoff(float sum, float, const Market& m) { return fmaxf(sum * (1.f / kSteps) - m.strike, 0.f) * m.discount; }
};
struct EuropeanCall {
    __device__ static float payoff(float, float last, const Market& m) { return fmaxf(last - m.strike, 0.f) * m.discount; }
};

template <class R, class Payoff>
__global__ void __launch_bounds__(R::kThreads, 4)
simulate_paths(Market m, float* __restrict__ value)
{
    __shared__ __align__(16) float4 slots[kSlots][kStepsPerChunk][32];
    __shared__ uint64_t full[kSlots];
    __shared__ uint64_t empty[kSlots];
    const int warp = threadIdx.x >> 5;
    const int lane = threadIdx.x & 31;
    const uint32_t first_path = blockIdx.x * kPathsPerBlock + lane;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kSlots; ++s) {
            ptx::mbar_init(&full[s], 1);
            ptx::mbar_init(&empty[s], 1);
        }
        ptx::mbar_init_fence();
    }
    __syncthreads();

    constexpr int kSequence = kGroupsPerBlock * kChunks;
    if (warp < R::kProducers) {
        for (int seq = warp; seq < kSequence; seq += R::kProducers) {
            const int slot = seq % kSlots;
            const int turn = seq / R::kConsumers;
            const uint32_t group = (turn / kChunks) * R::kConsumers + seq % R::kConsumers;
            const uint32_t step = (turn % kChunks) * kStepsPerChunk;
            ptx::mbar_wait(&empty[slot], ((seq / kSlots) & 1) ^ 1);
#pragma unroll 1
            for (uint32_t s = 0; s < kStepsPerChunk; ++s)
                slots[slot][s][lane] = normals(philox(first_path + group * 32, step + s, m.seed_lo, m.seed_hi));
            __syncwarp();
            if (lane == 0) ptx::mbar_arrive(&full[slot]);
        }
        return;
    }

    const int consumer = warp - R::kProducers;
    int seq = consumer;
    for (int group = consumer; group < kGroupsPerBlock; group += R::kConsumers) {
        float x[kAssets];
#pragma unroll
        for (int a = 0; a < kAssets; ++a) x[a] = m.spot_log2[a];
        float sum = 0.f, basket = 0.f;
        for (int chunk = 0; chunk < kChunks; ++chunk, seq += R::kConsumers) {
            const int slot = seq % kSlots;
            ptx::mbar_wait(&full[slot], (seq / kSlots) & 1);
#pragma unroll
            for (int s = 0; s < kStepsPerChunk; ++s) {
                const float4 z = slots[slot][s][lane];
                x[0] += fmaf(m.chol[0], z.x, m.drift[0]);
                x[1] += fmaf(m.chol[1], z.x, fmaf(m.chol[2], z.y, m.drift[1]));
                x[2] += fmaf(m.chol[3], z.x, fmaf(m.chol[4], z.y, fmaf(m.chol[5], z.z, m.drift[2])));
                x[3] += fmaf(m.chol[6], z.x, fmaf(m.chol[7], z.y, fmaf(m.chol[8], z.z, fmaf(m.chol[9], z.w, m.drift[3]))));
                basket = 0.f;
#pragma unroll
                for (int a = 0; a < kAssets; ++a) basket = fmaf(m.weight[a], fast_exp2(x[a]), basket);
                sum += basket;
            }
            __syncwarp();
            if (lane == 0) ptx::mbar_arrive(&empty[slot]);
        }
        value[first_path + group * 32] = Payoff::payoff(sum, basket, m);
    }
}

__global__ void __launch_bounds__(256) partial_sums(const float* __restrict__ value, double* __restrict__ out, int n)
{
    __shared__ float warp_sum[8];
    float s = 0.f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) s += value[i];
    for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    if ((threadIdx.x & 31) == 0) warp_sum[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0.f;
        for (int w = 0; w < 8; ++w) t += warp_sum[w];
        out[blockIdx.x] = t;
    }
}

using HotRoles = Roles<1, 7>;

}  // namespace mc

int main()
{
    using namespace mc;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    const int blocks = sms * 4, paths = blocks * kPathsPerBlock;
    Market m{};
    const double log2e = 1.4426950408889634, dt = 1.0 / kSteps;
    const double vol[4] = {0.20, 0.25, 0.30, 0.22}, rate = 0.03;
    const double corr[4][4] = {{1, .5, .3, .2}, {.5, 1, .4, .3}, {.3, .4, 1, .35}, {.2, .3, .35, 1}};
    double l[4][4] = {};
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j <= i; ++j) {
            double s = corr[i][j];
            for (int k = 0; k < j; ++k) s -= l[i][k] * l[j][k];
            l[i][j] = i == j ? std::sqrt(s) : s / l[j][j];
        }
    for (int i = 0, e = 0; i < 4; ++i) {
        for (int j = 0; j <= i; ++j) m.chol[e++] = static_cast<float>(l[i][j] * vol[i] * std::sqrt(dt) * log2e);
        m.drift[i] = static_cast<float>((rate - 0.5 * vol[i] * vol[i]) * dt * log2e);
        m.spot_log2[i] = static_cast<float>(std::log2(90.0 + 7.0 * i));
        m.weight[i] = 0.25f;
    }
    m.strike = 98.f;
    m.discount = static_cast<float>(std::exp(-rate));
    m.seed_lo = 0x1234567u;
    m.seed_hi = 0x89abcdeu;

    constexpr int kPartials = 264;
    float* d_value; double* d_part;
    CUDA_OK(cudaMalloc(&d_value, paths * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_part, kPartials * sizeof(double)));
    simulate_paths<HotRoles, EuropeanCall><<<blocks, HotRoles::kThreads>>>(m, d_value);
    const float us = time_steps(3, 60, [&] {
        simulate_paths<HotRoles, AsianCall><<<blocks, HotRoles::kThreads>>>(m, d_value);
        partial_sums<<<kPartials, 256>>>(d_value, d_part, paths);
    });

    std::vector<float> value(paths);
    std::vector<double> part(kPartials);
    CUDA_OK(cudaMemcpy(value.data(), d_value, paths * sizeof(float), cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(part.data(), d_part, kPartials * sizeof(double), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 2000; ++s) {
        const uint32_t p = s < 64 ? paths - 1 - s : hash32(s) % paths;
        double x[4], sum = 0;
        for (int a = 0; a < 4; ++a) x[a] = m.spot_log2[a];
        for (int t = 0; t < kSteps; ++t) {
            const uint4 b = philox(p, t, m.seed_lo, m.seed_hi);
            auto u = [](uint32_t v) { return ((v >> 8) + 0.5) * 0x1p-24; };
            const double r0 = std::sqrt(-2 * std::log(u(b.x))), r1 = std::sqrt(-2 * std::log(u(b.z)));
            const double a0 = 6.283185307179586 * u(b.y), a1 = 6.283185307179586 * u(b.w);
            const double z[4] = {r0 * std::cos(a0), r0 * std::sin(a0), r1 * std::cos(a1), r1 * std::sin(a1)};
            for (int i = 0, e = 0; i < 4; ++i) {
                x[i] += m.drift[i];
                for (int j = 0; j <= i; ++j) x[i] += m.chol[e++] * z[j];
                sum += 0.25 * std::exp2(x[i]);
            }
        }
        const double ref = std::fmax(sum / kSteps - m.strike, 0.0) * m.discount;
        if (!(std::fabs(value[p] - ref) <= 0.02)) {
            std::fprintf(stderr, "path %u: got %f, expected %f\n", p, value[p], ref);
            return 1;
        }
    }
    double total = 0, host = 0;
    for (double v : part) total += v;
    for (float v : value) host += v;
    if (!(std::fabs(total - host) <= 1e-4 * host)) {
        std::fprintf(stderr, "price %f, expected %f\n", total / paths, host / paths);
        return 1;
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
