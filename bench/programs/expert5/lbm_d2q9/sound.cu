// SPDX-License-Identifier: Apache-2.0
// Two-dimensional lattice Boltzmann flow (D2Q9, BGK collision, pull scheme) in a periodic box.
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

namespace lbm {

template <int Q>
struct Lattice;
template <>
struct Lattice<9> {
  static constexpr int q = 9;
  __host__ __device__ static constexpr int ex(int i) { return i == 1 || i == 5 || i == 8 ? 1 : (i == 3 || i == 6 || i == 7 ? -1 : 0); }
  __host__ __device__ static constexpr int ey(int i) { return i == 2 || i == 5 || i == 6 ? 1 : (i == 4 || i == 7 || i == 8 ? -1 : 0); }
  __host__ __device__ static constexpr float w(int i) { return i == 0 ? 4.f / 9.f : (i < 5 ? 1.f / 9.f : 1.f / 36.f); }
};

struct Bgk {
  float omega;
  template <class L>
  __host__ __device__ __forceinline__ void collide(float (&f)[L::q], float fx) const {
    float rho = 0.f, ux = 0.f, uy = 0.f;
#pragma unroll
    for (int i = 0; i < L::q; ++i) {
      rho += f[i];
      ux += float(L::ex(i)) * f[i];
      uy += float(L::ey(i)) * f[i];
    }
#ifdef __CUDA_ARCH__
    const float inv = __frcp_rn(rho);
#else
    const float inv = 1.0f / rho;
#endif
    ux = ux * inv + fx;
    uy = uy * inv;
    const float base = 1.f - 1.5f * (ux * ux + uy * uy);
#pragma unroll
    for (int i = 0; i < L::q; ++i) {
      const float c = 3.f * (float(L::ex(i)) * ux + float(L::ey(i)) * uy);
      const float eq = L::w(i) * rho * (base + c + 0.5f * c * c);
      f[i] += omega * (eq - f[i]);
    }
  }
};

// A thread owns one column position and walks ROWS rows; planes are [q][y][x].
template <class L, int ROWS, bool FORCED>
__global__ __launch_bounds__(256) void pull_collide(const float* __restrict__ src, float* __restrict__ dst, int nx, int ny,
                                                    Bgk op, float force) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int xm = x == 0 ? nx - 1 : x - 1, xp = x == nx - 1 ? 0 : x + 1;
  const size_t plane = size_t(nx) * ny;
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const int y = blockIdx.y * ROWS + r;
    const int ym = y == 0 ? ny - 1 : y - 1, yp = y == ny - 1 ? 0 : y + 1;
    float f[L::q];
#pragma unroll
    for (int i = 0; i < L::q; ++i) {
      const int sx = L::ex(i) > 0 ? xm : (L::ex(i) < 0 ? xp : x);
      const int sy = L::ey(i) > 0 ? ym : (L::ey(i) < 0 ? yp : y);
      f[i] = __ldg(src + i * plane + size_t(sy) * nx + sx);
    }
    op.template collide<L>(f, FORCED ? force : 0.f);
#pragma unroll
    for (int i = 0; i < L::q; ++i) __stcs(dst + i * plane + size_t(y) * nx + x, f[i]);
  }
}

}  // namespace lbm

int main() {
  using namespace lbm;
  using L = Lattice<9>;
  const int nx = 4096, ny = 2048;
  const size_t plane = size_t(nx) * ny;
  std::vector<float> h(9 * plane);
  for (int i = 0; i < 9; ++i)
    for (size_t k = 0; k < plane; ++k) h[i * plane + k] = L::w(i) * (1.f + 0.05f * (frnd() - 0.5f));
  float *a, *b;
  CK(cudaMalloc(&a, h.size() * 4));
  CK(cudaMalloc(&b, h.size() * 4));
  CK(cudaMemcpy(a, h.data(), h.size() * 4, cudaMemcpyHostToDevice));
  const Bgk op{1.3f};
  const float force = 1e-5f;
  constexpr int rows = 2;
  const dim3 grid(nx / 256, ny / rows);
  pull_collide<L, rows, false><<<grid, 256>>>(a, b, nx, ny, op, 0.f);
  pull_collide<L, rows, true><<<grid, 256>>>(a, b, nx, ny, op, force);
  std::vector<float> o(h.size());
  CK(cudaMemcpy(o.data(), b, o.size() * 4, cudaMemcpyDeviceToHost));
  for (int t = 0; t < 20000; ++t) {
    const int x = rnd() % nx, y = rnd() % ny;
    float f[9];
    for (int i = 0; i < 9; ++i) f[i] = h[i * plane + size_t((y - L::ey(i) + ny) % ny) * nx + (x - L::ex(i) + nx) % nx];
    op.collide<L>(f, force);
    for (int i = 0; i < 9; ++i)
      if (std::fabs(f[i] - o[i * plane + size_t(y) * nx + x]) > 1e-5f) {
        std::printf("mismatch at %d %d direction %d: %g %g\n", x, y, i, f[i], o[i * plane + size_t(y) * nx + x]);
        return 1;
      }
  }
  const float us = time_steps(60, [&] {
    pull_collide<L, rows, true><<<grid, 256>>>(a, b, nx, ny, op, force);
    std::swap(a, b);
  });
  CK(cudaMemcpy(o.data(), a, o.size() * 4, cudaMemcpyDeviceToHost));
  double mass = 0;
  for (float v : o) mass += v;
  if (!(std::fabs(mass / plane - 1.0) < 1e-2)) { std::printf("mass is not conserved: %f\n", mass / plane); return 1; }
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
