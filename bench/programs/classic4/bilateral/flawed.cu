// SPDX-License-Identifier: Apache-2.0
// Edge-preserving denoising of a luminance image with a bilateral filter, followed by detail recovery.
#include <cuda_runtime.h>
#include <algorithm>
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

namespace denoise {

constexpr int kMaxRadius = 6;
__constant__ float c_spatial[(2 * kMaxRadius + 1) * (2 * kMaxRadius + 1)];

struct GaussianRange {
  float inv_sigma;
  __device__ __forceinline__ float operator()(float diff) const {
    const float d = diff * inv_sigma;
    return exp(-0.5 * d * d);
  }
};

struct TukeyRange {
  float inv_sigma;
  __device__ __forceinline__ float operator()(float diff) const {
    const float d = diff * inv_sigma;
    const float k = fmaxf(0.0f, 1.0f - d * d);
    return k * k;
  }
};

template <int RADIUS, int BX, int BY, class Range>
__global__ void __launch_bounds__(BX* BY)
    bilateral(const float* __restrict__ src, float* __restrict__ dst, int width, int height, Range range) {
  constexpr int TW = BX + 2 * RADIUS, TH = BY + 2 * RADIUS;
  __shared__ float tile[TH][TW];
  const int x0 = blockIdx.x * BX - RADIUS, y0 = blockIdx.y * BY - RADIUS;
  for (int i = threadIdx.y * BX + threadIdx.x; i < TW * TH; i += BX * BY) {
    const int x = min(max(x0 + i % TW, 0), width - 1);
    const int y = min(max(y0 + i / TW, 0), height - 1);
    tile[i / TW][i % TW] = src[size_t(y) * width + x];
  }
  __syncthreads();

  const int x = blockIdx.x * BX + threadIdx.x, y = blockIdx.y * BY + threadIdx.y;
  if (x >= width || y >= height) return;
  const float centre = tile[threadIdx.y + RADIUS][threadIdx.x + RADIUS];
  float sum = 0.0f, norm = 0.0f;
#pragma unroll 1
  for (int dy = 0; dy <= 2 * RADIUS; ++dy) {
#pragma unroll
    for (int dx = 0; dx <= 2 * RADIUS; ++dx) {
      const float v = tile[threadIdx.y + dy][threadIdx.x + dx];
      const float w = c_spatial[dy * (2 * RADIUS + 1) + dx] * range(v - centre);
      sum = fmaf(w, v, sum);
      norm += w;
    }
  }
  dst[size_t(y) * width + x] = sum / norm;
}

__global__ void recover_detail(const float4* __restrict__ src, const float4* __restrict__ smooth, float4* __restrict__ dst,
                               float amount, int n4) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  const float4 a = src[i], b = smooth[i];
  dst[i] = make_float4(fmaf(amount, a.x - b.x, b.x), fmaf(amount, a.y - b.y, b.y), fmaf(amount, a.z - b.z, b.z),
                       fmaf(amount, a.w - b.w, b.w));
}

}  // namespace denoise

int main(int argc, char**) {
  constexpr int kRadius = 4, kSide = 2 * kRadius + 1;
  const int width = 3840, height = 2160;
  const size_t n = size_t(width) * height;
  const float sigma_range = 0.12f, sigma_space = 2.0f, amount = 0.25f;
  std::vector<float> image(n), result(n), spatial(kSide * kSide);
  uint32_t s = 5u;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      s = s * 1664525u + 1013904223u;
      image[size_t(y) * width + x] = 0.5f + 0.3f * (((x / 37) ^ (y / 29)) & 1) + 0.1f * ((s >> 8) * (1.0f / 16777216.0f) - 0.5f);
    }
  for (int i = 0; i < kSide * kSide; ++i) {
    const float dx = i % kSide - kRadius, dy = i / kSide - kRadius;
    spatial[i] = std::exp(-(dx * dx + dy * dy) / (2.0f * sigma_space * sigma_space));
  }
  float *d_src, *d_smooth, *d_dst;
  CK(cudaMalloc(&d_src, n * sizeof(float)));
  CK(cudaMalloc(&d_smooth, n * sizeof(float)));
  CK(cudaMalloc(&d_dst, n * sizeof(float)));
  CK(cudaMemcpy(d_src, image.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(denoise::c_spatial, spatial.data(), spatial.size() * sizeof(float)));

  const dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
  const int n4 = int(n / 4);
  const bool tukey = argc > 1;
  auto step = [&] {
    if (tukey)
      denoise::bilateral<kRadius, 32, 8><<<grid, block>>>(d_src, d_smooth, width, height, denoise::TukeyRange{0.5f / sigma_range});
    else
      denoise::bilateral<kRadius, 32, 8><<<grid, block>>>(d_src, d_smooth, width, height, denoise::GaussianRange{1.0f / sigma_range});
    denoise::recover_detail<<<(n4 + 255) / 256, 256>>>(reinterpret_cast<float4*>(d_src), reinterpret_cast<float4*>(d_smooth),
                                                       reinterpret_cast<float4*>(d_dst), amount, n4);
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 60;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(result.data(), d_dst, n * sizeof(float), cudaMemcpyDeviceToHost));

  for (size_t i = 0; i < n && !tukey; i += 1009) {
    const int x = int(i % width), y = int(i / width);
    double sum = 0, norm = 0;
    for (int dy = -kRadius; dy <= kRadius; ++dy)
      for (int dx = -kRadius; dx <= kRadius; ++dx) {
        const int xx = std::min(std::max(x + dx, 0), width - 1), yy = std::min(std::max(y + dy, 0), height - 1);
        const double v = image[size_t(yy) * width + xx], d = (v - image[i]) / sigma_range;
        const double w = spatial[(dy + kRadius) * kSide + dx + kRadius] * std::exp(-0.5 * d * d);
        sum += w * v;
        norm += w;
      }
    const double b = sum / norm, want = b + amount * (image[i] - b);
    if (!(std::fabs(result[i] - want) <= 1e-4)) {
      std::fprintf(stderr, "wrong pixel %d %d: %g, not %g\n", x, y, result[i], want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
