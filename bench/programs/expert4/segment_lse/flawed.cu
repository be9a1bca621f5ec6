// SPDX-License-Identifier: Apache-2.0
// Log-sum-exp of ragged candidate lists (recommender softmax normalisers), one warp a list, dynamic queue.
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

namespace rank {

struct Queue {
    unsigned next, done;
};

__device__ __forceinline__ float ex2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

struct LogSumExp {
    static constexpr float kPad = -INFINITY;
    __device__ __forceinline__ static float reduce(const float4 (&v)[2]) {
        constexpr float kLog2e = 1.4426950408889634f;
        float m = fmaxf(fmaxf(fmaxf(v[0].x, v[0].y), fmaxf(v[0].z, v[0].w)),
                        fmaxf(fmaxf(v[1].x, v[1].y), fmaxf(v[1].z, v[1].w)));
#pragma unroll
        for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
        const float b = -m * kLog2e;
        float s = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i)
            s += ex2(fmaf(v[i].x, kLog2e, b)) + ex2(fmaf(v[i].y, kLog2e, b)) + ex2(fmaf(v[i].z, kLog2e, b)) +
                 ex2(fmaf(v[i].w, kLog2e, b));
#pragma unroll
        for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
        return m + __logf(s);
    }
};
struct Maximum {
    static constexpr float kPad = -INFINITY;
    __device__ __forceinline__ static float reduce(const float4 (&v)[2]) {
        float m = fmaxf(fmaxf(fmaxf(v[0].x, v[0].y), fmaxf(v[0].z, v[0].w)),
                        fmaxf(fmaxf(v[1].x, v[1].y), fmaxf(v[1].z, v[1].w)));
#pragma unroll
        for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
        return m;
    }
};

template <int Grain>
__device__ __forceinline__ unsigned take(Queue* q, int lane) {
    return lane == 0 ? atomicAdd(&q->next, unsigned(Grain)) : 0u;
}

// Lists hold at most 256 scores, a multiple of 4; offsets count groups of four.
template <class Op, int Grain>
__global__ void __launch_bounds__(256, 4)
    segment_reduce(const float4* __restrict__ scores, const int* __restrict__ offsets, float* __restrict__ out,
                   unsigned segments, Queue* queue) {
    constexpr int kBatch = Grain < 4 ? Grain : 4;
    static_assert(Grain <= 32 && Grain % kBatch == 0, "");
    const int lane = threadIdx.x & 31;
    unsigned ticket = __shfl_sync(~0u, take<Grain>(queue, lane), 0);
    while (ticket < segments) {
        const unsigned upcoming = take<Grain>(queue, lane);
        const unsigned mine = min(ticket + min(lane, Grain - 1), segments - 1);
        const int begin = __ldg(offsets + mine), end = __ldg(offsets + mine + 1);
        float result = 0.0f;
#pragma unroll 1
        for (int j = 0; j < Grain; j += kBatch) {
            float4 v[kBatch][2];
#pragma unroll
            for (int u = 0; u < kBatch; ++u) {
                const int b = __shfl_sync(~0u, begin, j + u), e = __shfl_sync(~0u, end, j + u);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const int i = b + h * 32 + lane;
                    v[u][h] = i < e ? __ldcs(scores + i) : make_float4(Op::kPad, Op::kPad, Op::kPad, Op::kPad);
                }
            }
#pragma unroll
            for (int u = 0; u < kBatch; ++u) {
                const float r = Op::reduce(v[u]);
                if (lane == j + u) result = r;
            }
        }
        if (lane < Grain && ticket + lane < segments) out[ticket + lane] = result;
        ticket = __shfl_sync(~0u, upcoming, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&queue->done, 1u) == gridDim.x - 1) queue->next = 0, queue->done = 0;
    }
}

constexpr int kSegmentsPerTicket = 1;

template <class Op>
void launch(const float4* s, const int* off, float* out, unsigned n, Queue* q, int sms) {
    segment_reduce<Op, kSegmentsPerTicket><<<4 * sms, 256>>>(s, off, out, n, q);
    CK(cudaGetLastError());
}

}  // namespace rank

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline float score(size_t i) { return unit(uint32_t(i)) * 12.0f - 6.0f; }
__global__ void fill(float* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) p[i] = score(i);
}

int main(int argc, char**) {
    const unsigned segments = 1u << 21;
    const int iters = 40;
    const bool maximum = argc > 1;
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<int> off(segments + 1);
    for (unsigned i = 0; i < segments; ++i) off[i + 1] = off[i] + 8 + int(mix(i ^ 0x55aa1234u) % 49u);  // 32 to 224 scores
    const size_t n4 = off[segments];
    float *d_s, *d_out;
    int* d_off;
    rank::Queue* d_q;
    CK(cudaMalloc(&d_s, n4 * 16));
    CK(cudaMalloc(&d_out, segments * 4ull));
    CK(cudaMalloc(&d_off, off.size() * 4));
    CK(cudaMalloc(&d_q, sizeof(rank::Queue)));
    CK(cudaMemset(d_q, 0, sizeof(rank::Queue)));
    CK(cudaMemcpy(d_off, off.data(), off.size() * 4, cudaMemcpyHostToDevice));
    fill<<<4096, 256>>>(d_s, n4 * 4);
    CK(cudaGetLastError());
    auto step = [&] {
        if (maximum)
            rank::launch<rank::Maximum>(reinterpret_cast<float4*>(d_s), d_off, d_out, segments, d_q, sms);
        else
            rank::launch<rank::LogSumExp>(reinterpret_cast<float4*>(d_s), d_off, d_out, segments, d_q, sms);
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
    std::vector<float> out(segments);
    CK(cudaMemcpy(out.data(), d_out, segments * 4ull, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < segments; i += 211) {
        double m = -1e300, s = 0;
        for (size_t k = size_t(off[i]) * 4; k < size_t(off[i + 1]) * 4; ++k) m = std::fmax(m, score(k));
        for (size_t k = size_t(off[i]) * 4; k < size_t(off[i + 1]) * 4; ++k) s += std::exp(score(k) - m);
        double ref = maximum ? m : m + std::log(s);
        if (!(std::fabs(ref - out[i]) < 1e-3)) {
            std::printf("mismatch segment %u: %g vs %g\n", i, out[i], ref);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
