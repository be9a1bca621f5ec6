// SPDX-License-Identifier: Apache-2.0
// Activation layout change ahead of an int8 convolution: NHWC fp32 in, per-channel affine +
// ReLU + quantisation, NCHW int8 out. A block moves a tile of 64 pixels x 64 channels through
// XOR-swizzled shared memory.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t err_ = (call);                                                       \
    if (err_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                        \
                   cudaGetErrorString(err_));                                        \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

template <class F>
static double time_us(F&& launch, int warm = 20, int iters = 50) {
  for (int i = 0; i < warm; ++i) launch();
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) launch();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  return 1000.0 * ms / iters;
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

constexpr int kChannels = 64;
constexpr int kPixels = 64;
constexpr int kThreads = 256;
constexpr int kGroups = kPixels / 4;

// Position of (channel, pixel group) in the tile, in groups of four pixels.
__device__ __forceinline__ int place(int c, int g) {
  return c * kGroups + (g ^ (c >> 2) ^ ((c & 3) << 2));
}

__host__ __device__ inline float affine_relu(float v, float scale, float shift) {
  return fmaxf(fmaf(v, scale, shift), 0.0f);
}
__device__ __forceinline__ uint32_t pack4(float4 v) {
  const uint32_t a = min(__float2int_rn(v.x), 127), b = min(__float2int_rn(v.y), 127);
  const uint32_t c = min(__float2int_rn(v.z), 127), d = min(__float2int_rn(v.w), 127);
  return a | (b << 8) | (c << 16) | (d << 24);
}

__global__ void __launch_bounds__(kThreads)
    quantize_kernel(const float* __restrict__ in, const float* __restrict__ scale,
                    const float* __restrict__ shift, int8_t* __restrict__ out, int channels,
                    int pixels) {
  __shared__ __align__(16) float tile[kChannels * kPixels];
  const int p0 = blockIdx.x * kPixels;
  const int c0 = blockIdx.y * kChannels;
  const size_t image = blockIdx.z;
  const float* src = in + (image * pixels + p0) * channels + c0;

  const int c4 = threadIdx.x & 15, row = threadIdx.x >> 4;
  const float4 sc = *reinterpret_cast<const float4*>(scale + c0 + c4 * 4);
  const float4 sh = *reinterpret_cast<const float4*>(shift + c0 + c4 * 4);
  float4 v[kPixels / 16];
#pragma unroll
  for (int i = 0; i < kPixels / 16; ++i)
    v[i] = __ldcs(reinterpret_cast<const float4*>(
        src + static_cast<size_t>(row + i * 16) * channels + c4 * 4));
#pragma unroll
  for (int i = 0; i < kPixels / 16; ++i) {
    const int p = row + i * 16, c = c4 * 4;
    tile[place(c + 0, p >> 2) * 4 + (p & 3)] = affine_relu(v[i].x, sc.x, sh.x);
    tile[place(c + 1, p >> 2) * 4 + (p & 3)] = affine_relu(v[i].y, sc.y, sh.y);
    tile[place(c + 2, p >> 2) * 4 + (p & 3)] = affine_relu(v[i].z, sc.z, sh.z);
    tile[place(c + 3, p >> 2) * 4 + (p & 3)] = affine_relu(v[i].w, sc.w, sh.w);
  }
  __syncthreads();

  int8_t* dst = out + (image * channels + c0) * pixels + p0;
#pragma unroll
  for (int i = threadIdx.x; i < kChannels * kGroups; i += kThreads) {
    const int c = i % kChannels, g = i / kChannels;
    const float4 q = *reinterpret_cast<const float4*>(tile + place(c, g) * 4);
    *reinterpret_cast<uint32_t*>(dst + static_cast<size_t>(c) * pixels + g * 4) = pack4(q);
  }
}

__host__ __device__ inline float activation(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (8.0f / 65536.0f) - 4.0f;
}
__global__ void fill_kernel(float* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = activation(i);
}

int main() {
  const int images = 64, channels = 256, pixels = 112 * 80;
  const uint32_t n = static_cast<uint32_t>(images) * channels * pixels;
  float *in, *scale, *shift;
  int8_t* out;
  CK(cudaMalloc(&in, n * sizeof(float)));
  CK(cudaMalloc(&out, n));
  CK(cudaMalloc(&scale, channels * sizeof(float)));
  CK(cudaMalloc(&shift, channels * sizeof(float)));
  fill_kernel<<<2048, 256>>>(in, n);
  std::vector<float> hs(channels), hb(channels);
  for (int c = 0; c < channels; ++c) {
    hs[c] = 16.0f + static_cast<float>(c % 32);
    hb[c] = static_cast<float>(c % 11) - 5.0f;
  }
  CK(cudaMemcpy(scale, hs.data(), channels * sizeof(float), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(shift, hb.data(), channels * sizeof(float), cudaMemcpyHostToDevice));
  const dim3 grid(pixels / kPixels, channels / kChannels, images);
  const double us = time_us(
      [&] { quantize_kernel<<<grid, kThreads>>>(in, scale, shift, out, channels, pixels); });

  std::vector<int8_t> got(n);
  CK(cudaMemcpy(got.data(), out, n, cudaMemcpyDeviceToHost));
  long long sum = 0;
  for (int8_t v : got) sum += v;
  for (uint32_t s = 0; s < 4000000; ++s) {
    const uint32_t i = mix32(s) % n;
    const uint32_t c = i % channels, p = (i / channels) % pixels, b = i / channels / pixels;
    const float f = affine_relu(activation(i), hs[c], hb[c]);
    const int ref = std::min(static_cast<int>(std::nearbyint(f)), 127);
    const int g = got[(static_cast<size_t>(b) * channels + c) * pixels + p];
    if (g != ref) {
      std::fprintf(stderr, "image %u channel %u pixel %u: got %d want %d\n", b, c, p, g, ref);
      return 1;
    }
  }
  std::printf("checksum: %lld\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
