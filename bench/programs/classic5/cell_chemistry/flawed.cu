// SPDX-License-Identifier: Apache-2.0
// Advances the reaction chemistry of a combustion grid: each active cell takes as many substeps as its stiffness asks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace chem {

struct Cell {      // mass fractions of fuel, oxidiser, intermediate; temperature over 1000 K
  float fuel, ox, mid, temp;
};

struct TwoStep {
  float a1, e1, a2, e2, heat1, heat2;
  #pragma nv_exec_check_disable
  template <class Math>
  __host__ __device__ void advance(Cell& c, float dt, Math op) const {
    const float inv = op.div(1.f, c.temp);
    const float k1 = a1 * op.exp(-e1 * inv);
    const float k2 = a2 * op.exp(-e2 * inv);
    // Linearised implicit update keeps fractions positive.
    const float fuel = op.div(c.fuel, 1.f + dt * k1 * c.ox);
    const float r1 = c.fuel - fuel;
    const float mid = op.div(c.mid + r1, 1.f + dt * k2 * c.ox);
    const float r2 = c.mid + r1 - mid;
    c.ox = op.div(c.ox, 1.f + dt * (k1 * c.fuel + k2 * c.mid));
    c.fuel = fuel;
    c.mid = mid;
    c.temp = fminf(c.temp + heat1 * r1 + heat2 * r2, 3.f);
  }
};

struct DeviceMath {
  __device__ float exp(float x) const { return __expf(x); }
  __device__ float div(float a, float b) const { return __fdividef(a, b); }
};

struct HostMath {
  float exp(float x) const { return std::exp(x); }
  float div(float a, float b) const { return a / b; }
};

template <class Mechanism, bool RECORD>
__global__ void __launch_bounds__(256) advanceCells(const float4* __restrict__ in, float4* __restrict__ out,
                                                    const int* __restrict__ active,
                                                    const int* __restrict__ substeps, float* __restrict__ rate,
                                                    int count, float dt, Mechanism mech) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int cell = active[i];
  const float4 v = in[cell];
  Cell c = {v.x, v.y, v.z, v.w};
  const int n = substeps[cell];
  const float h = dt / float(n);
  for (int s = 0; s < n; ++s)
    mech.advance(c, h, DeviceMath{});
  if (RECORD) rate[cell] = (v.x - c.fuel) / dt;
  out[cell] = make_float4(c.fuel, c.ox, c.mid, c.temp);
}

}  // namespace chem

int main() {
  using namespace chem;
  const int cells = 2 * 1024 * 1024;
  std::vector<float4> host(cells);
  std::vector<int> substeps(cells), active(cells);
  uint32_t s = 31337;
  auto rnd = [&] { s = s * 1664525u + 1013904223u; return float(s >> 8) / 16777216.f; };
  for (int i = 0; i < cells; ++i) {
    const bool flame = rnd() < 1.f / 16;
    host[i] = make_float4(0.05f + 0.1f * rnd(), 0.2f + 0.1f * rnd(), 0.02f * rnd(),
                          flame ? 1.5f + 0.4f * rnd() : 0.6f + 0.3f * rnd());
    substeps[i] = flame ? 112 + int(rnd() * 32) : 6 + int(rnd() * 4);
  }
  std::iota(active.begin(), active.end(), 0);

  float4 *in, *out;
  int *dActive, *dSub;
  float* rate;
  CK(cudaMalloc(&in, cells * sizeof(float4)));
  CK(cudaMalloc(&out, cells * sizeof(float4)));
  CK(cudaMalloc(&dActive, cells * sizeof(int)));
  CK(cudaMalloc(&dSub, cells * sizeof(int)));
  CK(cudaMalloc(&rate, cells * sizeof(float)));
  CK(cudaMemcpy(in, host.data(), cells * sizeof(float4), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dActive, active.data(), cells * sizeof(int), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(dSub, substeps.data(), cells * sizeof(int), cudaMemcpyHostToDevice));

  const TwoStep mech = {400.f, 6.f, 900.f, 8.f, 2.f, 4.f};
  const float dt = 0.02f;
  auto step = [&] {
    advanceCells<TwoStep, false><<<cells / 256, 256>>>(in, out, dActive, dSub, rate, cells, dt, mech);
  };
  advanceCells<TwoStep, true><<<cells / 256, 256>>>(in, out, dActive, dSub, rate, cells, dt, mech);
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 100;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float4> got(cells);
  CK(cudaMemcpy(got.data(), out, cells * sizeof(float4), cudaMemcpyDeviceToHost));
  for (int i = 0; i < cells; i += 499) {
    Cell c = {host[i].x, host[i].y, host[i].z, host[i].w};
    for (int k = 0; k < substeps[i]; ++k) mech.advance(c, dt / float(substeps[i]), HostMath{});
    if (std::fabs(c.fuel - got[i].x) > 1e-3f || std::fabs(c.ox - got[i].y) > 1e-3f ||
        std::fabs(c.mid - got[i].z) > 1e-3f || std::fabs(c.temp - got[i].w) > 3e-3f) {
      fprintf(stderr, "mismatch at cell %d\n", i);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
