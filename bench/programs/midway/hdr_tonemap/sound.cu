// SPDX-License-Identifier: Apache-2.0
// Tone mapping of a linear HDR frame (fp32 samples): exposure that ramps over the frame, then
// the extended Reinhard curve. A producer warp feeds a bulk-copy ring of 8 KB tiles.
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
__device__ __forceinline__ uint32_t smem_addr(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void bar_init(uint64_t* bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_addr(bar)), "r"(count)
               : "memory");
}
__device__ __forceinline__ void bar_expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(bar)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bar_arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_addr(bar)) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* bar, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n .reg .pred p;\n"
        " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(smem_addr(bar)), "r"(parity)
        : "memory");
  } while (!done);
}
__device__ __forceinline__ void bulk_copy(void* dst, const void* src, uint32_t bytes,
                                          uint64_t* bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(smem_addr(dst)),
      "l"(src), "r"(bytes), "r"(smem_addr(bar))
      : "memory");
}
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

constexpr int kConsumers = 8;
constexpr int kThreads = (kConsumers + 1) * 32;
constexpr int kTile = kConsumers * 32 * 8;
constexpr int kStages = 24;

struct Shared {
  float tile[kStages][kTile];
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

__host__ __device__ inline float tone_map(float x) {
  constexpr float kInvWhite2 = 1.0f / 16.0f;
  return x * (1.0f + x * kInvWhite2) / (1.0f + x);
}
__device__ __forceinline__ float tone_map_fast(float x) {
  constexpr float kInvWhite2 = 1.0f / 16.0f;
  return __fdividef(x * fmaf(x, kInvWhite2, 1.0f), 1.0f + x);
}

struct Ring {
  int slot = 0;
  uint32_t phase = 0;
  __device__ __forceinline__ void next() {
    if (++slot == kStages) {
      slot = 0;
      phase ^= 1;
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1)
    tonemap_kernel(const float* __restrict__ in, float* __restrict__ out, int tiles, float exposure,
                  float slope) {
  extern __shared__ __align__(128) unsigned char raw[];
  Shared& sm = *reinterpret_cast<Shared*>(raw);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      bar_init(&sm.full[s], 1);
      bar_init(&sm.empty[s], kConsumers);
    }
    publish_barriers();
  }
  __syncthreads();

  Ring ring;
  if (warp == kConsumers) {
    if (lane == 0) {
      for (int t = blockIdx.x; t < tiles; t += gridDim.x, ring.next()) {
        bar_wait(&sm.empty[ring.slot], ring.phase ^ 1);
        bar_expect(&sm.full[ring.slot], kTile * sizeof(float));
        bulk_copy(sm.tile[ring.slot], in + static_cast<size_t>(t) * kTile,
                  kTile * sizeof(float), &sm.full[ring.slot]);
      }
    }
    return;
  }
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, ring.next()) {
    const float g = fmaf(slope, static_cast<float>(t), exposure);
    bar_wait(&sm.full[ring.slot], ring.phase);
    const float4* src = reinterpret_cast<const float4*>(sm.tile[ring.slot]);
    float4 v[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) v[k] = src[threadIdx.x + k * kConsumers * 32];
    __syncwarp();
    if (lane == 0) bar_arrive(&sm.empty[ring.slot]);
    float4* dst = reinterpret_cast<float4*>(out + static_cast<size_t>(t) * kTile);
#pragma unroll
    for (int k = 0; k < 2; ++k)
      __stcs(dst + threadIdx.x + k * kConsumers * 32,
             make_float4(tone_map_fast(v[k].x * g), tone_map_fast(v[k].y * g),
                         tone_map_fast(v[k].z * g), tone_map_fast(v[k].w * g)));
  }
}

__host__ __device__ inline float radiance(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (8.0f / 65536.0f);
}
__global__ void fill_kernel(float* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = radiance(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int tiles = 132 * 270;
  const uint32_t n = static_cast<uint32_t>(tiles) * kTile;
  const float exposure = 0.5f, slope = 1.0f / 65536.0f;
  float *in, *out;
  CK(cudaMalloc(&in, n * sizeof(float)));
  CK(cudaMalloc(&out, n * sizeof(float)));
  fill_kernel<<<sms * 8, 256>>>(in, n);
  CK(cudaFuncSetAttribute(tonemap_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          static_cast<int>(sizeof(Shared))));
  const double us = time_us(
      [&] { tonemap_kernel<<<sms, kThreads, sizeof(Shared)>>>(in, out, tiles, exposure, slope); });

  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += std::fabs(got[i]);
    const float g = slope * static_cast<float>(i / kTile) + exposure;
    const float ref = tone_map(radiance(i) * g);
    if (!(std::fabs(got[i] - ref) <= 1e-5f)) {
      std::fprintf(stderr, "pixel %u: got %g want %g\n", i, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
