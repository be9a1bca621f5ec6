// SPDX-License-Identifier: Apache-2.0
// Scores frames of int16 detector samples against a reference pulse (normalised correlation and energy).
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

namespace daq {

constexpr int kFrame = 1024;  // samples

struct Score {
    float match, energy;
};

namespace ptx {
__device__ __forceinline__ uint32_t addr(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void init(uint64_t* b, int n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(addr(b)), "r"(n) : "memory");
}
__device__ __forceinline__ void arrive(uint64_t* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(addr(b)) : "memory");
}
__device__ __forceinline__ void wait(uint64_t* b, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        "@p bra D;\n"
        "bra W;\n"
        "D:\n"
        "}\n" ::"r"(addr(b)),
        "r"(parity)
        : "memory");
}
}  // namespace ptx

// int16 pair -> two floats, pedestal removed. The sample is placed into the mantissa of 2^23.
struct PedestalDecoder {
    float pedestal;
    __device__ __forceinline__ float2 operator()(uint32_t u) const {
        u ^= 0x80008000u;
        float lo = __uint_as_float(__byte_perm(u, 0x4B000000u, 0x7610));
        float hi = __uint_as_float(__byte_perm(u, 0x4B000000u, 0x7632));
        return make_float2(lo - pedestal, hi - pedestal);
    }
};

template <int Pairs, int Slots>
struct __align__(16) Shared {
    float4 slot[Pairs][Slots][8 * 32];
    uint64_t full[Pairs][Slots], empty[Pairs][Slots];
};

template <int Pairs, int Slots, class Decoder>
__device__ __forceinline__ void decode_frames(Shared<Pairs, Slots>& sm, const uint4* __restrict__ in, int frames,
                                              int first, int stride, int pair, int lane, Decoder decode) {
    uint4 next[4];
    if (first < frames) {
#pragma unroll
        for (int c = 0; c < 4; ++c) next[c] = __ldcs(in + size_t(first) * 128 + c * 32 + lane);
    }
    int s = 0;
    uint32_t phase = 1;
    for (int f = first; f < frames; f += stride) {
        uint4 cur[4];
#pragma unroll
        for (int c = 0; c < 4; ++c) cur[c] = next[c];
        if (f + stride < frames) {
#pragma unroll
            for (int c = 0; c < 4; ++c) next[c] = __ldcs(in + size_t(f + stride) * 128 + c * 32 + lane);
        }
        ptx::wait(&sm.empty[pair][s], phase);
        float4* dst = sm.slot[pair][s];
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            float2 a = decode(cur[c].x), b = decode(cur[c].y), d = decode(cur[c].z), e = decode(cur[c].w);
            dst[(2 * c) * 32 + lane] = make_float4(a.x, a.y, b.x, b.y);
            dst[(2 * c + 1) * 32 + lane] = make_float4(d.x, d.y, e.x, e.y);
        }
        __threadfence();
        ptx::arrive(&sm.full[pair][s]);
        if (++s == Slots) s = 0, phase ^= 1;
    }
}

template <int Pairs, int Slots>
__device__ __forceinline__ void score_frames(Shared<Pairs, Slots>& sm, const float4* __restrict__ pulse,
                                             Score* __restrict__ out, int frames, int first, int stride, int pair,
                                             int lane) {
    float4 ref[8];
#pragma unroll
    for (int q = 0; q < 8; ++q) ref[q] = __ldg(pulse + ((q >> 1) * 32 + lane) * 2 + (q & 1));
    int s = 0;
    uint32_t phase = 0;
    for (int f = first; f < frames; f += stride) {
        ptx::wait(&sm.full[pair][s], phase);
        const float4* src = sm.slot[pair][s];
        float m0 = 0, m1 = 0, e0 = 0, e1 = 0;
#pragma unroll
        for (int q = 0; q < 8; ++q) {
            float4 v = src[q * 32 + lane];
            m0 = fmaf(v.x, ref[q].x, m0), m1 = fmaf(v.y, ref[q].y, m1);
            m0 = fmaf(v.z, ref[q].z, m0), m1 = fmaf(v.w, ref[q].w, m1);
            e0 = fmaf(v.x, v.x, e0), e1 = fmaf(v.y, v.y, e1);
            e0 = fmaf(v.z, v.z, e0), e1 = fmaf(v.w, v.w, e1);
        }
        ptx::arrive(&sm.empty[pair][s]);
        if (++s == Slots) s = 0, phase ^= 1;
        float m = m0 + m1, e = e0 + e1;
#pragma unroll
        for (int o = 16; o; o >>= 1) {
            m += __shfl_xor_sync(~0u, m, o);
            e += __shfl_xor_sync(~0u, e, o);
        }
        if (lane == 0) out[f] = {m * rsqrtf(e + 1.0f), e};
    }
}

template <int Pairs, int Slots, class Decoder>
__global__ void __launch_bounds__(Pairs * 64, 2)
    pulse_triage(const uint4* __restrict__ in, const float4* __restrict__ pulse, Score* __restrict__ out, int frames,
                 Decoder decode) {
    extern __shared__ __align__(16) uint8_t raw[];
    auto& sm = *reinterpret_cast<Shared<Pairs, Slots>*>(raw);
    if (threadIdx.x < Pairs * Slots) {
        ptx::init(&sm.full[0][0] + threadIdx.x, 32);
        ptx::init(&sm.empty[0][0] + threadIdx.x, 32);
    }
    __syncthreads();
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, pair = warp % Pairs;
    const int first = blockIdx.x * Pairs + pair, stride = gridDim.x * Pairs;
    if (warp < Pairs)
        decode_frames<Pairs, Slots>(sm, in, frames, first, stride, pair, lane, decode);
    else
        score_frames<Pairs, Slots>(sm, pulse, out, frames, first, stride, pair, lane);
}

}  // namespace daq

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline int16_t sample(size_t i) { return int16_t(mix(uint32_t(i)) & 0x0FFF); }

__global__ void fill(int16_t* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = sample(i);
}

int main() {
    using namespace daq;
    constexpr int P = 8, S = 3;
    const int frames = 262144, iters = 80;
    const float pedestal = 2048.0f;
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<float> pulse(kFrame);
    for (int i = 0; i < kFrame; ++i) pulse[i] = std::exp(-0.01f * std::abs(i - 300)) * std::cos(0.05f * i) * 0.05f;
    int16_t* d_in;
    float* d_pulse;
    Score* d_out;
    CK(cudaMalloc(&d_in, size_t(frames) * kFrame * 2));
    CK(cudaMalloc(&d_pulse, kFrame * 4));
    CK(cudaMalloc(&d_out, frames * sizeof(Score)));
    CK(cudaMemcpy(d_pulse, pulse.data(), kFrame * 4, cudaMemcpyHostToDevice));
    fill<<<4096, 256>>>(d_in, size_t(frames) * kFrame);
    CK(cudaGetLastError());
    auto* kernel = pulse_triage<P, S, PedestalDecoder>;
    const int bytes = sizeof(Shared<P, S>);
    CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    PedestalDecoder dec{8388608.0f + 32768.0f + pedestal};
    auto step = [&] {
        kernel<<<2 * sms, P * 64, bytes>>>(reinterpret_cast<const uint4*>(d_in), reinterpret_cast<const float4*>(d_pulse),
                                           d_out, frames, dec);
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
    std::vector<Score> out(frames);
    CK(cudaMemcpy(out.data(), d_out, frames * sizeof(Score), cudaMemcpyDeviceToHost));
    for (int f = 0; f < frames; f += 131) {
        double m = 0, e = 0;
        for (int i = 0; i < kFrame; ++i) {
            double v = sample(size_t(f) * kFrame + i) - double(pedestal);
            m += v * pulse[i];
            e += v * v;
        }
        double r = m / std::sqrt(e + 1.0);
        if (!(std::fabs(out[f].energy - e) <= 1e-4 * e) || !(std::fabs(out[f].match - r) <= 1e-3 * std::fabs(r) + 1e-4)) {
            std::printf("mismatch frame %d: %g %g vs %g %g\n", f, out[f].match, out[f].energy, r, e);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
