// SPDX-License-Identifier: Apache-2.0
// Range compression of radar pulses: 4096-point FFT of 16-bit I/Q samples and product with a reference spectrum.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <algorithm>

#define CK(x)                                                                  \
  do {                                                                         \
    cudaError_t e_ = (x);                                                      \
    if (e_ != cudaSuccess) {                                                   \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__,                   \
                   cudaGetErrorString(e_));                                    \
      std::exit(1);                                                            \
    }                                                                          \
  } while (0)

static uint32_t g_seed = 0x9E3779B9u;
static inline uint32_t rnd() {
  g_seed ^= g_seed << 13; g_seed ^= g_seed >> 17; g_seed ^= g_seed << 5;
  return g_seed;
}
[[maybe_unused]] static inline float frnd() { return (rnd() >> 8) * (1.0f / 16777216.0f); }

template <class F>
static float time_steps(int iters, F&& step) {
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  CK(cudaGetLastError());
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  return ms * 1000.0f / iters;
}
#include <cuda_fp16.h>

namespace radar {

constexpr int kN = 4096, kThreads = 256, kR = 16;

__device__ __forceinline__ float2 cmul(float2 a, float2 b) {
  return make_float2(fmaf(a.x, b.x, -a.y * b.y), fmaf(a.x, b.y, a.y * b.x));
}
__device__ __forceinline__ float2 cadd(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float2 csub(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }

__device__ __forceinline__ float2 root16(int k) {
  constexpr float c1 = 0.92387953251f, s1 = 0.38268343236f, h = 0.70710678119f;
  switch (k) {
    case 0: return make_float2(1.f, 0.f);
    case 1: return make_float2(c1, -s1);
    case 2: return make_float2(h, -h);
    case 3: return make_float2(s1, -c1);
    case 4: return make_float2(0.f, -1.f);
    case 6: return make_float2(-h, -h);
    default: return make_float2(-c1, s1);  // 9
  }
}

__device__ __forceinline__ void dft4(float2& a, float2& b, float2& c, float2& d) {
  const float2 s = cadd(a, c), t = csub(a, c), u = cadd(b, d), v = csub(b, d);
  a = cadd(s, u);
  c = csub(s, u);
  b = make_float2(t.x + v.y, t.y - v.x);
  d = make_float2(t.x - v.y, t.y + v.x);
}

// After the call, frequency r sits in v[4 * (r & 3) + (r >> 2)].
__device__ __forceinline__ void dft16(float2 (&v)[16]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) dft4(v[i], v[i + 4], v[i + 8], v[i + 12]);
#pragma unroll
  for (int i = 1; i < 4; ++i)
#pragma unroll
    for (int k = 1; k < 4; ++k) v[i + 4 * k] = cmul(v[i + 4 * k], root16(i * k));
#pragma unroll
  for (int k = 0; k < 4; ++k) dft4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
}

__device__ __forceinline__ int slot(int i) {
  return i ^ ((i >> 9) & 31);
}

template <int NS>
__device__ __forceinline__ void twiddle(float2 (&v)[16], int j) {
  float2 w, p;
  sincospif(-2.0f * float(j % NS) / float(NS * kR), &w.y, &w.x);
  p = w;
#pragma unroll
  for (int r = 1; r < kR; ++r) {
    v[r] = cmul(v[r], p);
    p = cmul(p, w);
  }
}

template <int NS>
__device__ __forceinline__ void exchange(float2 (&v)[16], float* re, float* im, int j) {
  const int base = (j / NS) * NS * kR + (j % NS);
#pragma unroll
  for (int r = 0; r < kR; ++r) {
    const int k = slot(base + r * NS);
    const float2 x = v[4 * (r & 3) + (r >> 2)];
    re[k] = x.x;
    im[k] = x.y;
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kR; ++r) {
    const int k = slot(j + r * kThreads);
    v[r] = make_float2(re[k], im[k]);
  }
}

template <bool MATCHED>
__global__ __launch_bounds__(kThreads, 3) void range_compress(const short2* __restrict__ pulse,
                                                              const float2* __restrict__ ref,
                                                              __half2* __restrict__ out, float scale) {
  extern __shared__ float plane[];  // two exchanges, real and imaginary planes
  float* re0 = plane;
  float* im0 = plane + kN;
  float* re1 = plane + 2 * kN;
  float* im1 = plane + 3 * kN;
  const int j = threadIdx.x;
  const short2* src = pulse + size_t(blockIdx.x) * kN;
  short2 raw[kR];
#pragma unroll
  for (int r = 0; r < kR; ++r) raw[r] = __ldcs(src + j + r * kThreads);
  float2 v[kR];
#pragma unroll
  for (int r = 0; r < kR; ++r) v[r] = make_float2(raw[r].x * scale, raw[r].y * scale);
  dft16(v);
  exchange<1>(v, re0, im0, j);
  twiddle<16>(v, j);
  dft16(v);
  exchange<16>(v, re1, im1, j);
  twiddle<256>(v, j);
  dft16(v);
  __half2* dst = out + size_t(blockIdx.x) * kN;
#pragma unroll
  for (int r = 0; r < kR; ++r) {
    float2 x = v[4 * (r & 3) + (r >> 2)];
    if (MATCHED) x = cmul(x, __ldg(ref + j + r * kThreads));
    dst[j + r * kThreads] = __floats2half2_rn(x.x, x.y);
  }
}

}  // namespace radar

int main() {
  using namespace radar;
  const int pulses = 8192;
  std::vector<short2> in(size_t(pulses) * kN);
  for (auto& s : in) s = make_short2(short(int(rnd() % 4095) - 2047), short(int(rnd() % 4095) - 2047));
  std::vector<float2> ref(kN);
  for (int i = 0; i < kN; ++i) ref[i] = make_float2(std::cos(1e-3f * i * i), -std::sin(1e-3f * i * i));
  short2* din;
  float2* dref;
  __half2* dout;
  CK(cudaMalloc(&din, in.size() * sizeof(short2)));
  CK(cudaMalloc(&dref, kN * sizeof(float2)));
  CK(cudaMalloc(&dout, in.size() * sizeof(__half2)));
  CK(cudaMemcpy(din, in.data(), in.size() * sizeof(short2), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dref, ref.data(), kN * sizeof(float2), cudaMemcpyHostToDevice));
  const int smem = 4 * kN * sizeof(float);
  CK(cudaFuncSetAttribute(range_compress<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  CK(cudaFuncSetAttribute(range_compress<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const float scale = 1.0f / 2048.0f;
  range_compress<false><<<16, kThreads, smem>>>(din, dref, dout, scale);  // noise estimate
  const float us = time_steps(60, [&] {
    range_compress<true><<<pulses, kThreads, smem>>>(din, dref, dout, scale);
  });
  std::vector<__half2> out(in.size());
  CK(cudaMemcpy(out.data(), dout, out.size() * sizeof(__half2), cudaMemcpyDeviceToHost));
  for (int t = 0; t < 60; ++t) {
    const int p = rnd() % pulses, k = rnd() % kN;
    double re = 0, im = 0;
    for (int i = 0; i < kN; ++i) {
      const double a = -2.0 * M_PI * double((long long)k * i % kN) / kN;
      const double x = in[size_t(p) * kN + i].x * scale, y = in[size_t(p) * kN + i].y * scale;
      re += x * std::cos(a) - y * std::sin(a);
      im += x * std::sin(a) + y * std::cos(a);
    }
    const double wr = re * ref[k].x - im * ref[k].y, wi = re * ref[k].y + im * ref[k].x;
    const float gr = __low2float(out[size_t(p) * kN + k]), gi = __high2float(out[size_t(p) * kN + k]);
    if (std::fabs(wr - gr) > 0.2 || std::fabs(wi - gi) > 0.2) {
      std::printf("mismatch pulse %d bin %d: %f %f vs %f %f\n", p, k, wr, wi, gr, gi);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
