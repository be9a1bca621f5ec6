// SPDX-License-Identifier: Apache-2.0
// Softened gravitational acceleration of tracer particles in the field of a set of massive bodies.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t e_ = (call);                                                         \
    if (e_ != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

namespace gravity {

__device__ __forceinline__ float fast_rsqrt(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

struct Plummer {
  float eps2;
  __device__ __forceinline__ float factor(float dx, float dy, float dz, float mass) const {
    const float inv = fast_rsqrt(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2))));
    return (mass * inv) * (inv * inv);
  }
};

struct Logarithmic {
  float eps2;
  __device__ __forceinline__ float factor(float dx, float dy, float dz, float mass) const {
    return __fdividef(mass, fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, eps2))));
  }
};

template <class Kernel, int THREADS, int PER_THREAD, int BODIES>
__global__ void __launch_bounds__(THREADS, 4)
    accelerate(const float4* __restrict__ tracer, const float4* __restrict__ body, float4* __restrict__ acc, Kernel kernel) {
  __shared__ float4 shared_body[BODIES];
#pragma unroll
  for (int k = 0; k < BODIES / THREADS; ++k) shared_body[k * THREADS + threadIdx.x] = body[k * THREADS + threadIdx.x];

  const int base = blockIdx.x * (THREADS * PER_THREAD) + threadIdx.x;
  float px[PER_THREAD], py[PER_THREAD], pz[PER_THREAD];
  float ax[PER_THREAD], ay[PER_THREAD], az[PER_THREAD];
#pragma unroll
  for (int i = 0; i < PER_THREAD; ++i) {
    const float4 p = tracer[base + i * THREADS];
    px[i] = p.x; py[i] = p.y; pz[i] = p.z;
    ax[i] = ay[i] = az[i] = 0.0f;
  }
  __syncthreads();

#pragma unroll 4
  for (int j = 0; j < BODIES; ++j) {
    const float4 b = shared_body[j];
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) {
      const float dx = b.x - px[i], dy = b.y - py[i], dz = b.z - pz[i];
      const float s = kernel.factor(dx, dy, dz, b.w);
      ax[i] = fmaf(s, dx, ax[i]);
      ay[i] = fmaf(s, dy, ay[i]);
      az[i] = fmaf(s, dz, az[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < PER_THREAD; ++i) acc[base + i * THREADS] = make_float4(ax[i], ay[i], az[i], 0.0f);
}

}  // namespace gravity

int main(int argc, char**) {
  constexpr int kThreads = 256, kPerThread = 4, kBodies = 2048, kBlocks = 132 * 4;
  const int n = kBlocks * kThreads * kPerThread;
  std::vector<float4> tracer(n), acc(n), body(kBodies);
  uint32_t s = 271828u;
  auto uniform = [&] { s = s * 1664525u + 1013904223u; return (s >> 8) * (2.0f / 16777216.0f) - 1.0f; };
  for (auto& p : tracer) { p.x = uniform(); p.y = uniform(); p.z = uniform(); p.w = 0.0f; }
  for (auto& b : body) { b.x = uniform(); b.y = uniform(); b.z = uniform(); b.w = (1.5f + uniform()) / kBodies; }
  float4 *d_tracer, *d_acc, *d_body;
  CK(cudaMalloc(&d_tracer, n * sizeof(float4)));
  CK(cudaMalloc(&d_acc, n * sizeof(float4)));
  CK(cudaMalloc(&d_body, kBodies * sizeof(float4)));
  CK(cudaMemcpy(d_tracer, tracer.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_body, body.data(), kBodies * sizeof(float4), cudaMemcpyHostToDevice));

  const float eps2 = 1e-3f;
  const bool logarithmic = argc > 1;
  auto step = [&] {
    if (logarithmic)
      gravity::accelerate<gravity::Logarithmic, kThreads, kPerThread, kBodies><<<kBlocks, kThreads>>>(d_tracer, d_body, d_acc, {eps2});
    else
      gravity::accelerate<gravity::Plummer, kThreads, kPerThread, kBodies><<<kBlocks, kThreads>>>(d_tracer, d_body, d_acc, {eps2});
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 100;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(acc.data(), d_acc, n * sizeof(float4), cudaMemcpyDeviceToHost));

  for (int i = 0; i < n; i += 1777) {
    double a[3] = {0, 0, 0}, mag = 0.0;
    for (const auto& b : body) {
      const double dx = double(b.x) - tracer[i].x, dy = double(b.y) - tracer[i].y, dz = double(b.z) - tracer[i].z;
      const double r2 = dx * dx + dy * dy + dz * dz + eps2;
      const double f = logarithmic ? b.w / r2 : b.w / (r2 * std::sqrt(r2));
      a[0] += f * dx; a[1] += f * dy; a[2] += f * dz;
      mag += f * std::sqrt(r2);
    }
    const double err = std::fabs(a[0] - acc[i].x) + std::fabs(a[1] - acc[i].y) + std::fabs(a[2] - acc[i].z);
    if (!(err <= 1e-4 * mag)) {
      std::fprintf(stderr, "wrong acceleration of tracer %d: %g off\n", i, err);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
