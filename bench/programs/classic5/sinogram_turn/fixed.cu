// SPDX-License-Identifier: Apache-2.0
// Turns CT detector counts into line integrals (flat field, logarithm), stored detector-major for filtering.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace ct {

struct LineIntegral {
  float floorValue;
  __device__ float operator()(float raw, float dark, float invFlat) const {
    const float t = fmaxf((raw - dark) * invFlat, floorValue);
    return -__logf(t);
  }
};

struct Transmission {
  float floorValue;
  __device__ float operator()(float raw, float dark, float invFlat) const {
    return fmaxf((raw - dark) * invFlat, floorValue);
  }
};

// in: [view][detector]; out: [detector][view].
template <typename Raw, class Op, int TILE, int ROWS>
__global__ void __launch_bounds__(TILE * ROWS) cornerTurn(const Raw* __restrict__ in, float* __restrict__ out,
                                                          const float2* __restrict__ calib, int detectors,
                                                          int views, Op op) {
  __shared__ float tile[TILE][TILE + 1];
  const int det = blockIdx.x * TILE + threadIdx.x;
  const int view0 = blockIdx.y * TILE;
  const float2 c = calib[det];
#pragma unroll
  for (int j = 0; j < TILE; j += ROWS) {
    const int v = view0 + threadIdx.y + j;
    tile[threadIdx.y + j][threadIdx.x] = op(float(in[size_t(v) * detectors + det]), c.x, c.y);
  }
  __syncthreads();
  const int outDet = blockIdx.x * TILE + threadIdx.y;
  const int outView = view0 + threadIdx.x;
#pragma unroll
  for (int j = 0; j < TILE; j += ROWS)
    out[size_t(outDet + j) * views + outView] = tile[threadIdx.x][threadIdx.y + j];
}

}  // namespace ct

int main() {
  using namespace ct;
  const int detectors = 8192, views = 8192;
  const size_t count = size_t(detectors) * views;
  std::vector<uint16_t> host(count);
  std::vector<float2> calib(detectors);
  uint32_t s = 99;
  for (auto& x : host) { s = s * 1664525u + 1013904223u; x = uint16_t(600 + (s >> 17)); }
  for (auto& c : calib) {
    s = s * 1664525u + 1013904223u;
    c.x = 90.f + float(s >> 26);
    c.y = 1.f / (40000.f + float((s >> 12) & 2047));
  }
  uint16_t* in;
  float* out;
  float2* cal;
  CK(cudaMalloc(&in, count * 2));
  CK(cudaMalloc(&out, count * 4));
  CK(cudaMalloc(&cal, detectors * sizeof(float2)));
  CK(cudaMemcpy(in, host.data(), count * 2, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(cal, calib.data(), detectors * sizeof(float2), cudaMemcpyHostToDevice));

  const dim3 block(32, 8), grid(detectors / 32, views / 32);
  auto step = [&] {
    cornerTurn<uint16_t, LineIntegral, 32, 8><<<grid, block>>>(in, out, cal, detectors, views,
                                                               LineIntegral{1e-4f});
  };
  cornerTurn<uint16_t, Transmission, 32, 8><<<grid, block>>>(in, out, cal, detectors, views, Transmission{1e-4f});
  for (int i = 0; i < 5; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 150;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float> got(count);
  CK(cudaMemcpy(got.data(), out, count * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; i += 1511) {
    const size_t v = i / detectors, d = i % detectors;
    const double t = std::fmax((double(host[i]) - calib[d].x) * calib[d].y, 1e-4);
    if (std::fabs(got[d * views + v] + std::log(t)) > 1e-3) {
      fprintf(stderr, "mismatch at view %zu detector %zu\n", v, d);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
