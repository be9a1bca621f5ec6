// SPDX-License-Identifier: Apache-2.0
// Applies the stiffness operator of a spectral-element discretisation to affine hexahedra, matrix free.
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

__device__ __forceinline__ void cp_async16(void* dst, const void* src)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(dst))), "l"(src) : "memory");
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory"); }

namespace sem {

constexpr int kMaxPoints = 8;
__constant__ float c_diff[kMaxPoints * kMaxPoints];
__constant__ float c_weight[kMaxPoints];

struct Metric {
    float rr, rs, rt, ss, st, tt;
};

template <int Points, int Elements>
struct Layout {
    static constexpr int N = Points;
    static constexpr int E = Elements;
    static constexpr int kPlane = Points * Points;
    static constexpr int kVolume = kPlane * Points;
    static constexpr int kThreads = kPlane * Elements;
    static constexpr int kMinBlocks = 27 / ((kThreads + 31) / 32);
    static constexpr int kPieces = Elements * kVolume / 4;
    static_assert(kVolume % 4 == 0, "elements are copied in 16-byte pieces");
};

struct Stiffness {
    static constexpr bool kMass = false;
};
struct Helmholtz {
    static constexpr bool kMass = true;
};

template <class L>
__device__ __forceinline__ void fetch(float* dst, const float* __restrict__ src)
{
#pragma unroll 1
    for (int p = threadIdx.x; p < L::kPieces; p += L::kThreads) cp_async16(dst + p * 4, src + p * 4);
}

template <class L, class Op>
__global__ void __launch_bounds__(L::kThreads, L::kMinBlocks)
apply_stiffness(const float* __restrict__ u, const Metric* __restrict__ metric, float* __restrict__ out, int batches, float lambda)
{
    constexpr int N = L::N;
    __shared__ __align__(16) float s_u[2][L::E * L::kVolume];
    __shared__ __align__(16) float s_gr[L::E * L::kVolume];
    __shared__ __align__(16) float s_gs[L::E * L::kVolume];
    const int e = threadIdx.x / L::kPlane;
    const int in_plane = threadIdx.x % L::kPlane;
    const int j = in_plane / N;
    const int i = in_plane % N;

    float di[N], dj[N], ti[N], tj[N];
#pragma unroll
    for (int q = 0; q < N; ++q) {
        di[q] = c_diff[i * N + q];
        dj[q] = c_diff[j * N + q];
        ti[q] = c_diff[q * N + i];
        tj[q] = c_diff[q * N + j];
    }
    const float w_ij = c_weight[i] * c_weight[j];

    int batch = blockIdx.x;
    if (batch < batches) fetch<L>(s_u[0], u + static_cast<size_t>(batch) * L::E * L::kVolume);
    cp_commit();

    for (int buf = 0; batch < batches; batch += gridDim.x, buf ^= 1) {
        const Metric g = metric[batch * L::E + e];
        cp_wait<0>();
        __syncthreads();
        if (batch + gridDim.x < batches) fetch<L>(s_u[buf ^ 1], u + static_cast<size_t>(batch + gridDim.x) * L::E * L::kVolume);
        cp_commit();

        const float* su = s_u[buf] + e * L::kVolume;
        float* gr = s_gr + e * L::kVolume;
        float* gs = s_gs + e * L::kVolume;
        float column[N], result[N];
#pragma unroll
        for (int k = 0; k < N; ++k) {
            column[k] = su[k * L::kPlane + in_plane];
            result[k] = 0.f;
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
            float ur = 0.f, us = 0.f, ut = 0.f;
#pragma unroll
            for (int q = 0; q < N; ++q) {
                ur = fmaf(di[q], su[k * L::kPlane + j * N + q], ur);
                us = fmaf(dj[q], su[k * L::kPlane + q * N + i], us);
                ut = fmaf(c_diff[k * N + q], column[q], ut);
            }
            const float w = w_ij * c_weight[k];
            gr[k * L::kPlane + in_plane] = w * fmaf(g.rr, ur, fmaf(g.rs, us, g.rt * ut));
            gs[k * L::kPlane + in_plane] = w * fmaf(g.rs, ur, fmaf(g.ss, us, g.st * ut));
            const float gt = w * fmaf(g.rt, ur, fmaf(g.st, us, g.tt * ut));
#pragma unroll
            for (int q = 0; q < N; ++q) result[q] = fmaf(c_diff[k * N + q], gt, result[q]);
            if constexpr (Op::kMass) result[k] = fmaf(lambda * w, column[k], result[k]);
        }
        __syncthreads();
        float* dst = out + (static_cast<size_t>(batch) * L::E + e) * L::kVolume + in_plane;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            float r = result[k];
#pragma unroll
            for (int q = 0; q < N; ++q) {
                r = fmaf(ti[q], gr[k * L::kPlane + j * N + q], r);
                r = fmaf(tj[q], gs[k * L::kPlane + q * N + i], r);
            }
            dst[k * L::kPlane] = r;
        }
    }
}

template <class L, class Op>
struct Operator {
    int grid = 0;
    explicit Operator(int sms)
    {
        int per_sm = 0;
        CUDA_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, apply_stiffness<L, Op>, L::kThreads, 0));
        grid = sms * per_sm;
    }
    void operator()(const float* u, const Metric* metric, float* out, int elements, float lambda) const
    {
        apply_stiffness<L, Op><<<grid, L::kThreads>>>(u, metric, out, elements / L::E, lambda);
    }
};

using Order5 = Layout<6, 1>;

}  // namespace sem

int main()
{
    using namespace sem;
    constexpr int N = Order5::N, V = Order5::kVolume, kElements = 64 * 64 * 64;
    int sms = 0;
    CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));

    const double x[6] = {-1.0, -0.765055323929465, -0.285231516480645, 0.285231516480645, 0.765055323929465, 1.0};
    float diff[kMaxPoints * kMaxPoints] = {}, weight[kMaxPoints] = {};
    for (int a = 0; a < N; ++a) {
        double diag = 0;
        for (int b = 0; b < N; ++b) {
            if (a == b) continue;
            double num = 1, den = 1;
            for (int c = 0; c < N; ++c) {
                if (c != a && c != b) num *= x[a] - x[c];
                if (c != b) den *= x[b] - x[c];
            }
            diff[a * N + b] = static_cast<float>(num / den);
            diag -= num / den;
        }
        diff[a * N + a] = static_cast<float>(diag);
        const double z = x[a], p5 = (63 * z * z * z * z * z - 70 * z * z * z + 15 * z) / 8;
        weight[a] = static_cast<float>(2.0 / (30.0 * p5 * p5));
    }
    CUDA_OK(cudaMemcpyToSymbol(c_diff, diff, sizeof(diff)));
    CUDA_OK(cudaMemcpyToSymbol(c_weight, weight, sizeof(weight)));

    const size_t n = static_cast<size_t>(kElements) * V;
    std::vector<float> u(n), got(n);
    std::vector<Metric> metric(kElements);
    for (size_t i = 0; i < n; ++i) u[i] = unit(static_cast<uint32_t>(i)) - 0.5f;
    for (int i = 0; i < kElements; ++i) {
        const float s = 0.8f + 0.4f * unit(0x70000000u + i);
        metric[i] = {s, 0.1f * s, 0.05f, 1.1f * s, -0.07f, 0.9f * s};
    }
    float *d_u, *d_out; Metric* d_metric;
    CUDA_OK(cudaMalloc(&d_u, n * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_out, n * sizeof(float)));
    CUDA_OK(cudaMalloc(&d_metric, kElements * sizeof(Metric)));
    CUDA_OK(cudaMemcpy(d_u, u.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_OK(cudaMemcpy(d_metric, metric.data(), kElements * sizeof(Metric), cudaMemcpyHostToDevice));

    const Operator<Order5, Helmholtz> helmholtz(sms);
    const Operator<Order5, Stiffness> stiffness(sms);
    helmholtz(d_u, d_metric, d_out, kElements, 0.5f);
    const float us = time_steps(3, 60, [&] { stiffness(d_u, d_metric, d_out, kElements, 0.f); });

    CUDA_OK(cudaMemcpy(got.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int s = 0; s < 200; ++s) {
        const int el = s < 16 ? kElements - 1 - s : static_cast<int>(hash32(s) % kElements);
        const float* v = &u[static_cast<size_t>(el) * V];
        const Metric g = metric[el];
        std::vector<double> ref(V, 0.0);
        for (int k = 0; k < N; ++k)
            for (int j = 0; j < N; ++j)
                for (int i = 0; i < N; ++i) {
                    double r = 0, q = 0, t = 0;
                    for (int m = 0; m < N; ++m) {
                        r += diff[i * N + m] * v[(k * N + j) * N + m];
                        q += diff[j * N + m] * v[(k * N + m) * N + i];
                        t += diff[k * N + m] * v[(m * N + j) * N + i];
                    }
                    const double w = static_cast<double>(weight[i]) * weight[j] * weight[k];
                    const double a = w * (g.rr * r + g.rs * q + g.rt * t), b = w * (g.rs * r + g.ss * q + g.st * t),
                                 c = w * (g.rt * r + g.st * q + g.tt * t);
                    for (int m = 0; m < N; ++m) {
                        ref[(k * N + j) * N + m] += diff[i * N + m] * a;
                        ref[(k * N + m) * N + i] += diff[j * N + m] * b;
                        ref[(m * N + j) * N + i] += diff[k * N + m] * c;
                    }
                }
        for (int p = 0; p < V; ++p)
            if (!(std::fabs(got[static_cast<size_t>(el) * V + p] - ref[p]) <= 1e-3)) {
                std::fprintf(stderr, "element %d point %d: got %f, expected %f\n", el, p, got[static_cast<size_t>(el) * V + p], ref[p]);
                return 1;
            }
    }
    std::printf("us_per_iteration: %.3f\n", us);
    return 0;
}
