// SPDX-License-Identifier: Apache-2.0
// One decoding step of multi-head attention over a ragged fp16 KV cache (one query token per sequence).
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

namespace serve {

struct Sequence {
    int first;   // first row of the cache
    int length;  // tokens held
};

template <int Dim>
struct Fragment {  // 8 of Dim channels of a row, one 16-byte piece a lane
    static constexpr int kLanes = Dim / 8;
    float v[8];
    __device__ __forceinline__ void from(uint4 u) {
        const __half2* h = reinterpret_cast<const __half2*>(&u);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float2 f = __half22float2(h[i]);
            v[2 * i] = f.x;
            v[2 * i + 1] = f.y;
        }
    }
};

struct SoftCap {
    float cap, inv;
    __device__ float operator()(float s) const { return cap * tanhf(s * inv); }
};
struct NoCap {
    __device__ float operator()(float s) const { return s; }
};

template <int Dim, int Warps>
struct Partials {
    float acc[Warps * 2][Dim];
    float m[Warps * 2], l[Warps * 2];
};

// Work of a persistent block: the round-th item of block b out of g.
struct Deal {
    int items;
    __device__ __forceinline__ int rounds(int g) const { return (items + g - 1) / g; }
    __device__ __forceinline__ int item(int round, int b, int g) const {
        return round * g + ((round & 1) ? g - 1 - b : b);
    }
};

template <int Dim, int Warps, int Unroll, class Logit>
__global__ void __launch_bounds__(Warps * 32, 4)
    ragged_decode(const __half* __restrict__ q, const __half* __restrict__ kc, const __half* __restrict__ vc,
                  const Sequence* __restrict__ seqs, float* __restrict__ out, int heads, Deal deal, float scale,
                  Logit logit) {
    constexpr int L = Fragment<Dim>::kLanes;
    static_assert(L == 16, "two rows a warp");
    __shared__ Partials<Dim, Warps> part;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, half_id = lane >> 4, piece = lane & 15;
    const int rounds = deal.rounds(gridDim.x);
    for (int r = 0; r < rounds; ++r) {
        const int item = deal.item(r, blockIdx.x, gridDim.x);
        if (item >= deal.items) continue;
        const int seq = item / heads, head = item - seq * heads;
        const Sequence s = seqs[seq];
        const size_t pitch = size_t(heads) * Dim;
        const __half* kbase = kc + size_t(s.first) * pitch + head * Dim + piece * 8;
        const __half* vbase = vc + size_t(s.first) * pitch + head * Dim + piece * 8;
        Fragment<Dim> qf;
        qf.from(*reinterpret_cast<const uint4*>(q + size_t(item) * Dim + piece * 8));
#pragma unroll
        for (int i = 0; i < 8; ++i) qf.v[i] *= scale;

        float m = -1e30f, l = 0.0f, acc[8] = {};
        const int step = Warps * 2 * Unroll;
        for (int t0 = warp * 2 * Unroll; t0 < s.length; t0 += step) {
            uint4 ku[Unroll], vu[Unroll];
#pragma unroll
            for (int u = 0; u < Unroll; ++u) {
                int t = min(t0 + 2 * u + half_id, s.length - 1);
                ku[u] = __ldcs(reinterpret_cast<const uint4*>(kbase + size_t(t) * pitch));
                vu[u] = __ldcs(reinterpret_cast<const uint4*>(vbase + size_t(t) * pitch));
            }
            float sc[Unroll], top = m;
#pragma unroll
            for (int u = 0; u < Unroll; ++u) {
                Fragment<Dim> k;
                k.from(ku[u]);
                float d = 0.0f;
#pragma unroll
                for (int i = 0; i < 8; ++i) d = fmaf(k.v[i], qf.v[i], d);
#pragma unroll
                for (int o = 8; o; o >>= 1) d += __shfl_xor_sync(~0u, d, o);
                sc[u] = t0 + 2 * u + half_id < s.length ? logit(d) : -1e30f;
                top = fmaxf(top, sc[u]);
            }
            const float fix = exp2f(m - top);
            m = top;
            l *= fix;
#pragma unroll
            for (int i = 0; i < 8; ++i) acc[i] *= fix;
#pragma unroll
            for (int u = 0; u < Unroll; ++u) {
                float p = t0 + 2 * u + half_id < s.length ? exp2f(sc[u] - top) : 0.0f;
                Fragment<Dim> v;
                v.from(vu[u]);
                l += p;
#pragma unroll
                for (int i = 0; i < 8; ++i) acc[i] = fmaf(p, v.v[i], acc[i]);
            }
        }
        const int slot = warp * 2 + half_id;
#pragma unroll
        for (int i = 0; i < 8; i += 4)
            *reinterpret_cast<float4*>(&part.acc[slot][piece * 8 + i]) = make_float4(acc[i], acc[i + 1], acc[i + 2], acc[i + 3]);
        if (piece == 0) part.m[slot] = m, part.l[slot] = l;
        __syncthreads();
        if (threadIdx.x < Dim) {
            float top = part.m[0];
#pragma unroll
            for (int i = 1; i < Warps * 2; ++i) top = fmaxf(top, part.m[i]);
            float num = 0.0f, den = 0.0f;
#pragma unroll
            for (int i = 0; i < Warps * 2; ++i) {
                float w = exp2f(part.m[i] - top);
                num = fmaf(w, part.acc[i][threadIdx.x], num);
                den = fmaf(w, part.l[i], den);
            }
            out[size_t(item) * Dim + threadIdx.x] = num / den;
        }
        __syncthreads();
    }
}

}  // namespace serve

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline __half cached(size_t i, uint32_t salt) {
    return __float2half(unit(uint32_t(i) ^ salt) * 2.0f - 1.0f);
}
__global__ void fill(__half* p, size_t n, uint32_t salt) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = cached(i, salt);
}

int main(int argc, char**) {
    using namespace serve;
    constexpr int D = 128, W = 4, U = 2;
    const int heads = 16, nseq = 264, iters = 50;
    int sms = 0;
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    std::vector<Sequence> seqs(nseq);
    int tokens = 0;
    for (int i = 0; i < nseq; ++i) {  // the batcher admits long contexts first
        double u = double(nseq - 1 - i) / (nseq - 1);
        seqs[i] = {tokens, 16 + int(2000 * u * u * u)};
        tokens += seqs[i].length;
    }
    const size_t cache = size_t(tokens) * heads * D, qn = size_t(nseq) * heads * D;
    __half *dq, *dk, *dv;
    Sequence* ds;
    float* dout;
    CK(cudaMalloc(&dq, qn * 2));
    CK(cudaMalloc(&dk, cache * 2));
    CK(cudaMalloc(&dv, cache * 2));
    CK(cudaMalloc(&ds, nseq * sizeof(Sequence)));
    CK(cudaMalloc(&dout, qn * 4));
    CK(cudaMemcpy(ds, seqs.data(), nseq * sizeof(Sequence), cudaMemcpyHostToDevice));
    fill<<<1024, 256>>>(dq, qn, 0x11111111u);
    fill<<<4096, 256>>>(dk, cache, 0x5bd1e995u);
    fill<<<4096, 256>>>(dv, cache, 0x9e3779b9u);
    CK(cudaGetLastError());
    const float log2e = 1.4426950408889634f, scale = log2e / std::sqrt(float(D));
    const bool capped = argc > 1;
    const float cap = 30.0f * log2e;
    auto step = [&] {
        if (capped)
            ragged_decode<D, W, U><<<4 * sms, W * 32>>>(dq, dk, dv, ds, dout, heads, Deal{nseq * heads}, scale, SoftCap{cap, 1.0f / cap});
        else
            ragged_decode<D, W, U><<<4 * sms, W * 32>>>(dq, dk, dv, ds, dout, heads, Deal{nseq * heads}, scale, NoCap{});
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
    std::vector<float> out(qn);
    CK(cudaMemcpy(out.data(), dout, qn * 4, cudaMemcpyDeviceToHost));
    for (int it = 0; it < nseq * heads; it += 61) {
        const int seq = it / heads, head = it % heads;
        std::vector<double> p(seqs[seq].length), o(D, 0.0);
        double top = -1e300, den = 0;
        for (int t = 0; t < seqs[seq].length; ++t) {
            double d = 0;
            size_t row = (size_t(seqs[seq].first + t) * heads + head) * D;
            for (int c = 0; c < D; ++c)
                d += double(__half2float(cached(size_t(it) * D + c, 0x11111111u))) * __half2float(cached(row + c, 0x5bd1e995u));
            d *= scale;
            if (capped) d = cap * std::tanh(d / cap);
            p[t] = d;
            top = std::fmax(top, d);
        }
        for (int t = 0; t < seqs[seq].length; ++t) {
            double w = std::exp2(p[t] - top);
            size_t row = (size_t(seqs[seq].first + t) * heads + head) * D;
            den += w;
            for (int c = 0; c < D; ++c) o[c] += w * __half2float(cached(row + c, 0x9e3779b9u));
        }
        for (int c = 0; c < D; ++c)
            if (!(std::fabs(o[c] / den - out[size_t(it) * D + c]) < 1e-4)) {
                std::printf("mismatch item %d channel %d: %g vs %g\n", it, c, out[size_t(it) * D + c], o[c] / den);
                return 1;
            }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
