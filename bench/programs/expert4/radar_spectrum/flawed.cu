// SPDX-License-Identifier: Apache-2.0
// Windowed 4096-point power spectra of radar range lines (complex fp32 in, fp32 power out).
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

namespace radar {

struct c32 {
    float x, y;
};
__device__ __forceinline__ c32 operator+(c32 a, c32 b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ c32 operator-(c32 a, c32 b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ c32 operator*(c32 a, c32 b) {
    return {fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x)};
}

__device__ __forceinline__ void fft4(c32& a, c32& b, c32& c, c32& d) {
    c32 s0 = a + c, s1 = a - c, s2 = b + d, s3 = b - d;
    c32 r = {s3.y, -s3.x};  // -i * s3
    a = s0 + s2;
    c = s0 - s2;
    b = s1 + r;
    d = s1 - r;
}

// In-register 16-point transform; bin r ends up in v[slot16(r)].
__host__ __device__ constexpr int slot16(int r) { return 4 * (r & 3) + (r >> 2); }

__device__ __forceinline__ void fft16(c32 (&v)[16]) {
    constexpr float C1 = 0.92387953251128674f, S1 = 0.38268343236508977f, H = 0.70710678118654752f;
    const c32 w[10] = {{1, 0}, {C1, -S1}, {H, -H}, {S1, -C1}, {0, -1}, {0, 0}, {-H, -H}, {0, 0}, {0, 0}, {-C1, S1}};
#pragma unroll
    for (int i = 0; i < 4; ++i) fft4(v[i], v[i + 4], v[i + 8], v[i + 12]);
#pragma unroll
    for (int i = 1; i < 4; ++i)
#pragma unroll
        for (int k = 1; k < 4; ++k) v[i + 4 * k] = v[i + 4 * k] * w[i * k];
#pragma unroll
    for (int k = 0; k < 4; ++k) fft4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
}

template <int N>
struct ExchangeLayout {
    static constexpr int kPadShift = 8;
    static constexpr int kFloat2 = N + (N >> kPadShift);
    __device__ static __forceinline__ int at(int i) { return i + (i >> kPadShift); }
};

struct PowerOut {
    using type = float;
    __device__ static float make(c32 v) { return fmaf(v.x, v.x, v.y * v.y); }
};
struct ComplexOut {
    using type = float2;
    __device__ static float2 make(c32 v) { return make_float2(v.x, v.y); }
};

__device__ __forceinline__ void twiddle(c32 (&v)[16], c32 w1) {
    c32 w2 = w1 * w1, w4 = w2 * w2, w8 = w4 * w4, w3 = w2 * w1;
    c32 hi[4] = {{1.f, 0.f}, w4, w8, w8 * w4};
    c32 lo[4] = {{1.f, 0.f}, w1, w2, w3};
#pragma unroll
    for (int r = 1; r < 16; ++r) v[r] = v[r] * (hi[r >> 2] * lo[r & 3]);
}

template <int N, class Out>
__global__ void __launch_bounds__(N / 16, 4)
    range_spectrum(const float2* __restrict__ lines, const float* __restrict__ window,
                   const float2* __restrict__ roots, typename Out::type* __restrict__ out) {
    static_assert(N == 4096, "three radix-16 passes");
    constexpr int T = N / 16;
    using Ex = ExchangeLayout<N>;
    extern __shared__ float2 sm[];
    const int j = threadIdx.x;
    const float2* src = lines + size_t(blockIdx.x) * N;
    c32 v[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        float2 t = __ldcs(src + j + r * T);
        float w = __ldg(window + j + r * T);
        v[r] = {t.x * w, t.y * w};
    }
    fft16(v);
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        c32 t = v[slot16(r)];
        sm[Ex::at(16 * j + r)] = make_float2(t.x, t.y);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        float2 t = sm[Ex::at(j + r * T)];
        v[r] = {t.x, t.y};
    }
    float2 w = __ldg(roots + (j & 15) * 16);
    twiddle(v, {w.x, w.y});
    fft16(v);
    __syncthreads();
    const int d = (j >> 4) * 256 + (j & 15);
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        c32 t = v[slot16(r)];
        sm[Ex::at(d + 16 * r)] = make_float2(t.x, t.y);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 16; ++r) {
        float2 t = sm[Ex::at(j + r * T)];
        v[r] = {t.x, t.y};
    }
    w = __ldg(roots + j);
    twiddle(v, {w.x, w.y});
    fft16(v);
    auto* dst = out + size_t(blockIdx.x) * N;
#pragma unroll
    for (int r = 0; r < 16; ++r) __stcs(dst + j + r * T, Out::make(v[slot16(r)]));
}

template <class Out>
void launch(const float2* in, const float* win, const float2* roots, typename Out::type* out, int lines) {
    constexpr int N = 4096;
    constexpr int bytes = ExchangeLayout<N>::kFloat2 * int(sizeof(float2));
    CK(cudaFuncSetAttribute(range_spectrum<N, Out>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    range_spectrum<N, Out><<<lines, N / 16, bytes>>>(in, win, roots, out);
    CK(cudaGetLastError());
}

}  // namespace radar

__host__ __device__ inline float noise(uint32_t i) {
    i ^= i >> 16;
    i *= 0x7feb352dU;
    i ^= i >> 15;
    i *= 0x846ca68bU;
    i ^= i >> 16;
    return float(i >> 8) * (1.0f / 8388608.0f) - 1.0f;
}
__global__ void fill_lines(float2* p, size_t n) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        p[i] = make_float2(noise(uint32_t(2 * i)), noise(uint32_t(2 * i + 1)));
}

int main(int argc, char** argv) {
    const int N = 4096, lines = 8192, iters = 100;
    const bool complex_out = argc > 1 && argv[1][0] == 'c';
    const double PI = 3.14159265358979323846;
    std::vector<float> win(N);
    std::vector<float2> roots(N);
    for (int i = 0; i < N; ++i) {
        win[i] = float(0.54 - 0.46 * std::cos(2 * PI * i / (N - 1)));
        roots[i] = make_float2(float(std::cos(2 * PI * i / N)), float(-std::sin(2 * PI * i / N)));
    }
    float2 *d_in, *d_roots;
    float *d_win, *d_out;
    CK(cudaMalloc(&d_in, sizeof(float2) * size_t(N) * lines));
    CK(cudaMalloc(&d_out, sizeof(float) * size_t(N) * lines * (complex_out ? 2 : 1)));
    CK(cudaMalloc(&d_roots, sizeof(float2) * N));
    CK(cudaMalloc(&d_win, sizeof(float) * N));
    CK(cudaMemcpy(d_roots, roots.data(), sizeof(float2) * N, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(d_win, win.data(), sizeof(float) * N, cudaMemcpyHostToDevice));
    fill_lines<<<2048, 256>>>(d_in, size_t(N) * lines);
    CK(cudaGetLastError());
    auto step = [&] {
        if (complex_out)
            radar::launch<radar::ComplexOut>(d_in, d_win, d_roots, reinterpret_cast<float2*>(d_out), lines);
        else
            radar::launch<radar::PowerOut>(d_in, d_win, d_roots, d_out, lines);
    };
    for (int i = 0; i < 5; ++i) step();
    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    CK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, a, b));

    std::vector<float> got(N * (complex_out ? 2 : 1));
    for (int line : {0, 77, 4095, lines - 1}) {
        CK(cudaMemcpy(got.data(), d_out + size_t(line) * got.size(), sizeof(float) * got.size(), cudaMemcpyDeviceToHost));
        for (int k = 1; k < N; k += 97) {
            double re = 0, im = 0;
            for (int n = 0; n < N; ++n) {
                size_t i = size_t(line) * N + n;
                double x = double(noise(uint32_t(2 * i))) * win[n], y = double(noise(uint32_t(2 * i + 1))) * win[n];
                double c = std::cos(2 * PI * double((long long)n * k % N) / N), s = -std::sin(2 * PI * double((long long)n * k % N) / N);
                re += x * c - y * s;
                im += x * s + y * c;
            }
            double p = re * re + im * im;
            double g = complex_out ? double(got[2 * k]) * got[2 * k] + double(got[2 * k + 1]) * got[2 * k + 1] : got[k];
            if (!(std::fabs(p - g) <= 1e-3 * p + 0.05)) {
                std::printf("mismatch line %d bin %d: %g vs %g\n", line, k, g, p);
                return 1;
            }
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
