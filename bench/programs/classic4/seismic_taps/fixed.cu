// SPDX-License-Identifier: Apache-2.0
// One time step of the 3-D acoustic wave equation with a finite-difference operator given as a list of taps.
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

namespace wave {

template <typename T>
struct View3 {
  T* data;
  int64_t stride_z, stride_y, stride_x;
  __host__ __device__ __forceinline__ T& operator()(int64_t z, int64_t y, int64_t x) const {
    return data[z * stride_z + y * stride_y + x * stride_x];
  }
};

struct Tap {
  int offset;
  float weight;
};

constexpr int kMaxTaps = 64;
__constant__ Tap c_taps[kMaxTaps];

template <bool DAMPED, int BX, int BY>
__global__ void __launch_bounds__(BX* BY)
    advance(View3<const float> now, View3<const float> before, View3<const float> speed2, View3<float> next, int taps,
            int nx, int ny, float damping) {
  const int x = blockIdx.x * BX + threadIdx.x;
  const int y = blockIdx.y * BY + threadIdx.y;
  const int z = blockIdx.z;
  if (x >= nx || y >= ny) return;
  const float* centre = &now(z, y, x);
  float lap = 0.0f;
#pragma unroll 5
  for (int k = 0; k < taps; ++k) {
    const Tap t = c_taps[k];
    lap = fmaf(t.weight, centre[t.offset], lap);
  }
  float v = fmaf(2.0f, now(z, y, x), -before(z, y, x));
  if (DAMPED) v -= damping * (now(z, y, x) - before(z, y, x));
  next(z, y, x) = fmaf(speed2(z, y, x), lap, v);
}

}  // namespace wave

int main(int argc, char**) {
  constexpr int kHalo = 4;
  const int nx = 384, ny = 256, nz = 192;
  const int64_t px = 416, py = ny + 2 * kHalo, pz = nz + 2 * kHalo;
  const size_t n = size_t(px) * py * pz;
  const size_t origin = (size_t(kHalo) * py + kHalo) * px + 16;
  const float w[5] = {-205.0f / 72.0f, 8.0f / 5.0f, -1.0f / 5.0f, 8.0f / 315.0f, -1.0f / 560.0f};

  std::vector<wave::Tap> taps;
  auto add = [&](int dz, int dy, int dx, float weight) { taps.push_back(wave::Tap{int((dz * py + dy) * px + dx), weight}); };
  add(0, 0, 0, 3.0f * w[0]);
  for (int r = 1; r <= 4; ++r) {
    add(0, 0, -r, w[r]); add(0, 0, r, w[r]);
    add(0, -r, 0, w[r]); add(0, r, 0, w[r]);
    add(-r, 0, 0, w[r]); add(r, 0, 0, w[r]);
  }

  std::vector<float> now(n), before(n), speed2(n), next(n);
  uint32_t s = 31u;
  auto uniform = [&] { s = s * 1664525u + 1013904223u; return (s >> 8) * (1.0f / 16777216.0f); };
  for (size_t i = 0; i < n; ++i) { now[i] = uniform() - 0.5f; before[i] = uniform() - 0.5f; speed2[i] = 0.05f + 0.05f * uniform(); }
  float *d_now, *d_before, *d_speed2, *d_next;
  CK(cudaMalloc(&d_now, n * sizeof(float)));
  CK(cudaMalloc(&d_before, n * sizeof(float)));
  CK(cudaMalloc(&d_speed2, n * sizeof(float)));
  CK(cudaMalloc(&d_next, n * sizeof(float)));
  CK(cudaMemcpy(d_now, now.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_before, before.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_speed2, speed2.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemset(d_next, 0, n * sizeof(float)));
  CK(cudaMemcpyToSymbol(wave::c_taps, taps.data(), taps.size() * sizeof(wave::Tap)));

  auto view = [&](auto* p) { return wave::View3<std::remove_pointer_t<decltype(p)>>{p + origin, py * px, px, 1}; };
  const dim3 block(32, 8), grid((nx + 31) / 32, (ny + 7) / 8, nz);
  const bool damped = argc > 1;
  const float damping = 0.01f;
  const float *c_now = d_now, *c_before = d_before, *c_speed2 = d_speed2;
  auto step = [&] {
    if (damped)
      wave::advance<true, 32, 8><<<grid, block>>>(view(c_now), view(c_before), view(c_speed2), view(d_next), int(taps.size()), nx, ny, damping);
    else
      wave::advance<false, 32, 8><<<grid, block>>>(view(c_now), view(c_before), view(c_speed2), view(d_next), int(taps.size()), nx, ny, damping);
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 80;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(next.data(), d_next, n * sizeof(float), cudaMemcpyDeviceToHost));

  for (int m = 0; m < 40000; ++m) {
    const uint32_t r = m * 2654435761u;
    const int x = (r >> 4) % nx, y = (r >> 9) % ny, z = (r >> 15) % nz;
    const int64_t i = int64_t(origin) + (z * py + y) * px + x;
    double lap = 3.0 * w[0] * now[i];
    for (int k = 1; k <= 4; ++k)
      lap += double(w[k]) * (double(now[i - k]) + now[i + k] + now[i - k * px] + now[i + k * px] + now[i - k * px * py] + now[i + k * px * py]);
    double want = 2.0 * now[i] - before[i] + speed2[i] * lap;
    if (damped) want -= damping * (double(now[i]) - before[i]);
    if (!(std::fabs(next[i] - want) <= 1e-4)) {
      std::fprintf(stderr, "wrong value at %d %d %d: %g, not %g\n", x, y, z, next[i], want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
