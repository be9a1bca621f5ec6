// SPDX-License-Identifier: Apache-2.0
// Electrostatic field of point charges at a set of probe points by direct summation.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace field {

__device__ __forceinline__ float fastRsqrt(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

struct Coulomb {
  float soft2;
  __device__ __forceinline__ void add(float3& f, const float3& p, const float4& q) const {
    const float dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
    const float inv = fastRsqrt(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, soft2))));
    const float w = (q.w * inv) * (inv * inv);
    f.x = fmaf(w, dx, f.x);
    f.y = fmaf(w, dy, f.y);
    f.z = fmaf(w, dz, f.z);
  }
};

template <class Law, int THREADS, int PER>
__global__ void __launch_bounds__(THREADS) probeField(const float4* __restrict__ charges, int sources,
                                                      const float4* __restrict__ probes,
                                                      float4* __restrict__ out, Law law) {
  __shared__ float4 tile[2][THREADS];
  const int first = blockIdx.x * THREADS * PER + threadIdx.x;
  float3 p[PER], f[PER];
#pragma unroll
  for (int i = 0; i < PER; ++i) {
    const float4 v = probes[first + i * THREADS];
    p[i] = make_float3(v.x, v.y, v.z);
    f[i] = make_float3(0.f, 0.f, 0.f);
  }
  float4 next = charges[threadIdx.x];
  int buffer = 0;
  for (int base = 0; base < sources; base += THREADS, buffer ^= 1) {
    tile[buffer][threadIdx.x] = next;
    __syncthreads();
    if (base + THREADS < sources) next = charges[base + THREADS + threadIdx.x];
#pragma unroll 16
    for (int j = 0; j < THREADS; ++j) {
      const float4 q = tile[buffer][j];
#pragma unroll
      for (int i = 0; i < PER; ++i) law.add(f[i], p[i], q);
    }
  }
#pragma unroll
  for (int i = 0; i < PER; ++i) out[first + i * THREADS] = make_float4(f[i].x, f[i].y, f[i].z, 0.f);
}

}  // namespace field

int main() {
  using namespace field;
  constexpr int kThreads = 512, kPer = 4;
  const int probes = 132 * kThreads * kPer, sources = 16384;
  std::vector<float4> hq(sources), hp(probes);
  uint32_t s = 8;
  auto rnd = [&] { s = s * 1664525u + 1013904223u; return float(s >> 8) * (2.f / 16777216.f) - 1.f; };
  for (auto& q : hq) { q.x = rnd(); q.y = rnd(); q.z = rnd(); q.w = rnd(); }
  for (auto& p : hp) { p.x = 2 * rnd(); p.y = 2 * rnd(); p.z = 2 * rnd(); p.w = 0; }
  float4 *q, *p, *out;
  CK(cudaMalloc(&q, sources * sizeof(float4)));
  CK(cudaMalloc(&p, probes * sizeof(float4)));
  CK(cudaMalloc(&out, probes * sizeof(float4)));
  CK(cudaMemcpy(q, hq.data(), sources * sizeof(float4), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(p, hp.data(), probes * sizeof(float4), cudaMemcpyHostToDevice));

  const Coulomb law{1e-3f};
  auto step = [&] { probeField<Coulomb, kThreads, kPer><<<probes / (kThreads * kPer), kThreads>>>(q, sources, p, out, law); };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 40;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float4> got(probes);
  CK(cudaMemcpy(got.data(), out, probes * sizeof(float4), cudaMemcpyDeviceToHost));
  for (int i = 0; i < probes; i += 2711) {
    double fx = 0, fy = 0, fz = 0, mag = 0;
    for (int j = 0; j < sources; ++j) {
      const double dx = double(hp[i].x) - hq[j].x, dy = double(hp[i].y) - hq[j].y, dz = double(hp[i].z) - hq[j].z;
      const double r2 = dx * dx + dy * dy + dz * dz + law.soft2;
      const double w = hq[j].w / (r2 * std::sqrt(r2));
      fx += w * dx; fy += w * dy; fz += w * dz;
      mag += std::fabs(w) * std::sqrt(r2);
    }
    if (std::fabs(got[i].x - fx) + std::fabs(got[i].y - fy) + std::fabs(got[i].z - fz) > 1e-4 * mag) {
      fprintf(stderr, "mismatch at probe %d\n", i);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
