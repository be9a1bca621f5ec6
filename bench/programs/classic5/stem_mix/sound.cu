// SPDX-License-Identifier: Apache-2.0
// Mixes stereo audio stems into a master track with one gain a stem and side, and limits the result.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace mix {

template <int STEMS>
struct Bus {
  const float4* stem[STEMS];   // interleaved left, right
  float2 gain[STEMS];
};

struct Limit {
  float ceiling;
  __host__ __device__ float operator()(float v) const { return fminf(fmaxf(v, -ceiling), ceiling); }
};

struct Pass {
  __host__ __device__ float operator()(float v) const { return v; }
};

template <int STEMS, class Post>
__global__ void __launch_bounds__(256) mixDown(const __grid_constant__ Bus<STEMS> bus, float4* __restrict__ out,
                                               int count, Post post) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= count) return;
  float4 v[STEMS];
#pragma unroll
  for (int s = 0; s < STEMS; ++s) v[s] = __ldcs(bus.stem[s] + i);
  float4 m = make_float4(0.f, 0.f, 0.f, 0.f);
#pragma unroll
  for (int s = 0; s < STEMS; ++s) {
    m.x = fmaf(bus.gain[s].x, v[s].x, m.x);
    m.y = fmaf(bus.gain[s].y, v[s].y, m.y);
    m.z = fmaf(bus.gain[s].x, v[s].z, m.z);
    m.w = fmaf(bus.gain[s].y, v[s].w, m.w);
  }
  __stcs(out + i, make_float4(post(m.x), post(m.y), post(m.z), post(m.w)));
}

}  // namespace mix

int main() {
  using namespace mix;
  constexpr int kStems = 4;
  const int frames = 1 << 25, floats = 2 * frames, count = floats / 4;
  Bus<kStems> bus;
  Bus<2> pair;
  std::vector<std::vector<float>> host(kStems, std::vector<float>(floats));
  uint32_t s = 606;
  for (int k = 0; k < kStems; ++k) {
    for (auto& v : host[k]) { s = s * 1664525u + 1013904223u; v = float(s >> 8) * (2.f / 16777216.f) - 1.f; }
    float* d;
    CK(cudaMalloc(&d, size_t(floats) * 4));
    CK(cudaMemcpy(d, host[k].data(), size_t(floats) * 4, cudaMemcpyHostToDevice));
    bus.stem[k] = reinterpret_cast<const float4*>(d);
    bus.gain[k] = make_float2(0.3f + 0.1f * k, 0.7f - 0.1f * k);
  }
  for (int k = 0; k < 2; ++k) { pair.stem[k] = bus.stem[k]; pair.gain[k] = bus.gain[k]; }
  float* out;
  CK(cudaMalloc(&out, size_t(floats) * 4));
  float4* out4 = reinterpret_cast<float4*>(out);
  const Limit limit{0.95f};

  auto step = [&] { mixDown<kStems, Limit><<<(count + 255) / 256, 256>>>(bus, out4, count, limit); };
  mixDown<2, Pass><<<(count + 255) / 256, 256>>>(pair, out4, count, Pass{});
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 60;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float> got(floats);
  CK(cudaMemcpy(got.data(), out, size_t(floats) * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < floats; i += 701) {
    float m = 0;
    for (int k = 0; k < kStems; ++k) m = std::fma((i & 1) ? bus.gain[k].y : bus.gain[k].x, host[k][i], m);
    if (std::fabs(got[i] - limit(m)) > 1e-5f) {
      fprintf(stderr, "mismatch at %d: %g, not %g\n", i, got[i], limit(m));
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
