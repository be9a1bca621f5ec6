// SPDX-License-Identifier: Apache-2.0
// Transformer block prologue: adds the branch output to the residual stream and RMS-normalises the row (bf16).
#include <cuda_bf16.h>
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

namespace layer {

struct RowMath {
    float v[8];
    __device__ __forceinline__ void load_sum(uint4 a, uint4 b) {
        const uint32_t ua[4] = {a.x, a.y, a.z, a.w}, ub[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            v[2 * i] = __uint_as_float(ua[i] << 16) + __uint_as_float(ub[i] << 16);
            v[2 * i + 1] = __uint_as_float(ua[i] & 0xffff0000u) + __uint_as_float(ub[i] & 0xffff0000u);
        }
    }
    __device__ __forceinline__ float squares() const {
        float s = 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i) s = fmaf(v[i], v[i], s);
        return s;
    }
    __device__ __forceinline__ uint4 pack() const {
        uint4 r;
        uint32_t* u = &r.x;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            __nv_bfloat162 t = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
            u[i] = *reinterpret_cast<uint32_t*>(&t);
        }
        return r;
    }
    // weight (or 1 + weight) times the reciprocal root mean square
    template <bool ZeroCentred>
    __device__ __forceinline__ uint4 scaled(uint4 w, float inv) const {
        const uint32_t uw[4] = {w.x, w.y, w.z, w.w};
        RowMath o;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float a = __uint_as_float(uw[i] << 16), b = __uint_as_float(uw[i] & 0xffff0000u);
            o.v[2 * i] = v[2 * i] * inv * (ZeroCentred ? 1.0f + a : a);
            o.v[2 * i + 1] = v[2 * i + 1] * inv * (ZeroCentred ? 1.0f + b : b);
        }
        return o.pack();
    }
};

template <int Hidden, int Threads, bool ZeroCentred>
__global__ void __launch_bounds__(Threads, 2048 / Threads)
    residual_rmsnorm(const uint4* __restrict__ x, uint4* __restrict__ residual_out, const uint4* __restrict__ residual,
                     const uint4* __restrict__ weight, uint4* __restrict__ y, float eps) {
    constexpr int kPieces = Hidden / 8 / Threads, kWarps = Threads / 32;
    static_assert(kPieces * 8 * Threads == Hidden, "");
    __shared__ float part[kWarps];
    const size_t row = size_t(blockIdx.x) * (Hidden / 8);
    uint4 a[kPieces], b[kPieces];
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        a[i] = __ldcs(x + row + i * Threads + threadIdx.x);
        b[i] = __ldcs(residual + row + i * Threads + threadIdx.x);
    }
    uint4 sum[kPieces];
    float ss = 0.0f;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        RowMath m;
        m.load_sum(a[i], b[i]);
        sum[i] = m.pack();
        __stcs(residual_out + row + i * Threads + threadIdx.x, sum[i]);
        ss += m.squares();
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) ss += __shfl_xor_sync(~0u, ss, o);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = ss;
    __syncthreads();
    float total = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) total += part[w];
    const float inv = rsqrtf(total * (1.0f / Hidden) + eps);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
        RowMath m;
        m.load_sum(sum[i], make_uint4(0, 0, 0, 0));
        __stcs(y + row + i * Threads + threadIdx.x,
               m.template scaled<ZeroCentred>(__ldg(weight + i * Threads + threadIdx.x), inv));
    }
}

template <bool ZeroCentred>
void launch(const __nv_bfloat16* x, const __nv_bfloat16* r, const __nv_bfloat16* w, __nv_bfloat16* ro, __nv_bfloat16* y,
            int rows) {
    residual_rmsnorm<4096, 256, ZeroCentred><<<rows, 256>>>(
        reinterpret_cast<const uint4*>(x), reinterpret_cast<uint4*>(ro), reinterpret_cast<const uint4*>(r),
        reinterpret_cast<const uint4*>(w), reinterpret_cast<uint4*>(y), 1e-5f);
    CK(cudaGetLastError());
}

}  // namespace layer

__host__ __device__ inline uint32_t mix(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return i;
}
__host__ __device__ inline float unit(uint32_t i) { return float(mix(i) >> 8) * (1.0f / 16777216.0f); }

__host__ __device__ inline float value(size_t i, uint32_t salt) {  // exact in bf16
    return float(int(mix(uint32_t(i) ^ salt) & 255u) - 128) * (1.0f / 64.0f);
}
__global__ void fill(__nv_bfloat16* p, size_t n, uint32_t salt) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = __float2bfloat16(value(i, salt));
}

int main(int argc, char**) {
    const int H = 4096, rows = 132 * 8 * 24, iters = 60;
    const bool zero_centred = argc > 1;
    const size_t n = size_t(rows) * H;
    __nv_bfloat16 *x, *r, *w, *ro, *y;
    CK(cudaMalloc(&x, n * 2));
    CK(cudaMalloc(&r, n * 2));
    CK(cudaMalloc(&ro, n * 2));
    CK(cudaMalloc(&y, n * 2));
    CK(cudaMalloc(&w, H * 2));
    fill<<<4096, 256>>>(x, n, 0x01234567u);
    fill<<<4096, 256>>>(r, n, 0x89abcdefu);
    fill<<<16, 256>>>(w, H, 0x0badcafeu);
    CK(cudaGetLastError());
    auto step = [&] {
        if (zero_centred)
            layer::launch<true>(x, r, w, ro, y, rows);
        else
            layer::launch<false>(x, r, w, ro, y, rows);
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
    std::vector<__nv_bfloat16> hro(H), hy(H);
    for (int row = 0; row < rows; row += 523) {
        CK(cudaMemcpy(hro.data(), ro + size_t(row) * H, H * 2, cudaMemcpyDeviceToHost));
        CK(cudaMemcpy(hy.data(), y + size_t(row) * H, H * 2, cudaMemcpyDeviceToHost));
        double ss = 0;
        for (int c = 0; c < H; ++c) {
            double v = double(value(size_t(row) * H + c, 0x01234567u)) + value(size_t(row) * H + c, 0x89abcdefu);
            ss += v * v;
        }
        const double inv = 1.0 / std::sqrt(ss / H + 1e-5);
        for (int c = 0; c < H; ++c) {
            double v = double(value(size_t(row) * H + c, 0x01234567u)) + value(size_t(row) * H + c, 0x89abcdefu);
            double g = value(c, 0x0badcafeu), o = v * inv * (zero_centred ? 1.0 + g : g);
            if (!(std::fabs(v - __bfloat162float(hro[c])) <= 0.01 * std::fabs(v)) ||
                !(std::fabs(o - __bfloat162float(hy[c])) <= 0.02 * std::fabs(o) + 1e-3)) {
                std::printf("mismatch row %d col %d: %g %g vs %g %g\n", row, c, __bfloat162float(hro[c]),
                            __bfloat162float(hy[c]), v, o);
                return 1;
            }
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
