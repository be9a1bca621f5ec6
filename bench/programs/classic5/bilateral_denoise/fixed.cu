// SPDX-License-Identifier: Apache-2.0
// Edge-preserving bilateral smoothing of a depth image with a 7 x 7 window.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

namespace depth {

__constant__ float cSpatial[15 * 15];

struct GaussianRange {
  float invSigma2;
  __device__ float operator()(float d) const {
    return __expf(-0.5f * d * d * invSigma2);
  }
};

struct BoxRange {
  float limit;
  __device__ float operator()(float d) const { return fabsf(d) < limit ? 1.f : 0.f; }
};

template <int RADIUS, class Range>
__global__ void __launch_bounds__(256) bilateral(const float* __restrict__ in, float* __restrict__ out,
                                                 int width, int height, Range range) {
  constexpr int BX = 32, BY = 8, PY = 4;
  constexpr int TW = BX + 2 * RADIUS, TH = BY * PY + 2 * RADIUS;
  __shared__ float tile[TH][TW];
  const int x0 = blockIdx.x * BX - RADIUS, y0 = blockIdx.y * BY * PY - RADIUS;
  for (int y = threadIdx.y; y < TH; y += BY)
    for (int x = threadIdx.x; x < TW; x += BX) {
      const int gx = min(max(x0 + x, 0), width - 1);
      const int gy = min(max(y0 + y, 0), height - 1);
      tile[y][x] = in[gy * width + gx];
    }
  __syncthreads();

  const int ty = threadIdx.y * PY;
  float centre[PY], sum[PY], norm[PY];
#pragma unroll
  for (int p = 0; p < PY; ++p) {
    centre[p] = tile[ty + p + RADIUS][threadIdx.x + RADIUS];
    sum[p] = norm[p] = 0.f;
  }
#pragma unroll 1
  for (int dx = 0; dx <= 2 * RADIUS; ++dx) {
    float column[PY + 2 * RADIUS];
#pragma unroll
    for (int r = 0; r < PY + 2 * RADIUS; ++r) column[r] = tile[ty + r][threadIdx.x + dx];
#pragma unroll
    for (int dy = 0; dy <= 2 * RADIUS; ++dy) {
      const float ws = cSpatial[dy * (2 * RADIUS + 1) + dx];
#pragma unroll
      for (int p = 0; p < PY; ++p) {
        const float v = column[p + dy];
        const float w = ws * range(v - centre[p]);
        sum[p] = fmaf(w, v, sum[p]);
        norm[p] += w;
      }
    }
  }
  const int gx = blockIdx.x * BX + threadIdx.x;
#pragma unroll
  for (int p = 0; p < PY; ++p)
    out[(blockIdx.y * BY * PY + ty + p) * width + gx] = __fdividef(sum[p], norm[p]);
}

}  // namespace depth

int main() {
  using namespace depth;
  constexpr int R = 3;
  const int width = 4096, height = 2112;
  const size_t count = size_t(width) * height;
  std::vector<float> host(count), spatial((2 * R + 1) * (2 * R + 1));
  uint32_t s = 5;
  for (size_t i = 0; i < count; ++i) {
    s = s * 1664525u + 1013904223u;
    const int x = int(i % width), y = int(i / width);
    host[i] = 1.f + ((x / 37 + y / 53) % 5) * 0.3f + float(s >> 8) * (0.05f / 16777216.f);
  }
  for (int y = -R; y <= R; ++y)
    for (int x = -R; x <= R; ++x) spatial[(y + R) * (2 * R + 1) + x + R] = std::exp(-0.5f * (x * x + y * y) / 4.f);
  float *in, *out;
  CK(cudaMalloc(&in, count * 4));
  CK(cudaMalloc(&out, count * 4));
  CK(cudaMemcpy(in, host.data(), count * 4, cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(cSpatial, spatial.data(), spatial.size() * 4));

  const dim3 block(32, 8), grid(width / 32, height / 32);
  const GaussianRange range{1.f / (0.1f * 0.1f)};
  bilateral<2, BoxRange><<<grid, block>>>(in, out, width, height, BoxRange{0.2f});
  for (int i = 0; i < 5; ++i) bilateral<R, GaussianRange><<<grid, block>>>(in, out, width, height, range);
  CK(cudaDeviceSynchronize());
  cudaEvent_t e0, e1;
  CK(cudaEventCreate(&e0));
  CK(cudaEventCreate(&e1));
  const int iters = 100;
  CK(cudaEventRecord(e0));
  for (int i = 0; i < iters; ++i) bilateral<R, GaussianRange><<<grid, block>>>(in, out, width, height, range);
  CK(cudaEventRecord(e1));
  CK(cudaEventSynchronize(e1));
  CK(cudaGetLastError());
  float ms;
  CK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float> got(count);
  CK(cudaMemcpy(got.data(), out, count * 4, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; i += 1201) {
    const int x = int(i % width), y = int(i / width);
    double sum = 0, norm = 0;
    for (int dy = -R; dy <= R; ++dy)
      for (int dx = -R; dx <= R; ++dx) {
        const int gx = std::min(std::max(x + dx, 0), width - 1), gy = std::min(std::max(y + dy, 0), height - 1);
        const double v = host[size_t(gy) * width + gx], d = v - host[i];
        const double w = spatial[(dy + R) * (2 * R + 1) + dx + R] * std::exp(-0.5 * d * d * range.invSigma2);
        sum += w * v;
        norm += w;
      }
    if (std::fabs(got[i] - sum / norm) > 1e-4) {
      fprintf(stderr, "mismatch at (%d, %d): %g, not %g\n", x, y, got[i], sum / norm);
      return 1;
    }
  }
  printf("us_per_iteration: %.3f\n", ms * 1000 / iters);
  return 0;
}
